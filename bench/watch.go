package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
	notify := func(obj any) {
		if seen, ok := obj.(T); ok {
			see(seen)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, obj any) { notify(obj) }})
	if err != nil {
		return fmt.Errorf("watch the control plane: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watch the control plane: %w", context.Cause(ctx))
	}
	return nil
}
