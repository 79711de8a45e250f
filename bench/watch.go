package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// firsts notes when something was first seen of each of several objects. One
// may wait at a time.
type firsts struct {
	mu      sync.Mutex
	at      map[string]map[string]time.Time // what → of which → when
	changed chan struct{}
}

func newFirsts() *firsts {
	return &firsts{at: map[string]map[string]time.Time{}, changed: make(chan struct{}, 1)}
}

// see notes that something is seen of an object now.
func (f *firsts) see(what, of string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[what] == nil {
		f.at[what] = map[string]time.Time{}
	}
	if _, known := f.at[what][of]; known {
		return
	}
	f.at[what][of] = time.Now()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// all waits until something was seen of n objects, and returns when it was seen
// of the last one.
func (f *firsts) all(ctx context.Context, what string, n int, most time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		seen, last := f.count(what)
		if seen >= n {
			return last, nil
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait for %s: seen of %d out of %d: %w", what, seen, n, ctx.Err())
		}
	}
}

// count returns of how many objects something was seen, and when of the last.
func (f *firsts) count(what string) (int, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := time.Time{}
	for _, at := range f.at[what] {
		if at.After(last) {
			last = at
		}
	}
	return len(f.at[what]), last
}

// sideBySide does something n times, a few at a time.
func sideBySide(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// follow calls see with each object of a kind in the namespace, as it is and
// whenever it changes, until ctx ends. It returns when all that are there were
// seen.
func follow[T client.Object](ctx context.Context, b *bench, example T, list client.ObjectList, see func(T)) error {
	hub := b.hub
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			out := list.DeepCopyObject().(client.ObjectList)
			return out, hub.List(ctx, out, client.InNamespace(namespace), &client.ListOptions{Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return hub.Watch(ctx, list.DeepCopyObject().(client.ObjectList), client.InNamespace(namespace), &client.ListOptions{Raw: &o})
		},
	}
	informer := cache.NewSharedIndexInformer(source, example, 0, cache.Indexers{})
	tell := func(obj any) {
		if seen, ok := obj.(T); ok {
			see(seen)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }})
	if err != nil {
		return fmt.Errorf("watch the control plane: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watch the control plane: %w", context.Cause(ctx))
	}
	return nil
}
