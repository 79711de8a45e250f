package diskcache

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// keeper lists and watches a kind, and stores what it sees.
type keeper struct {
	store  *kindStore
	source cache.ListerWatcherWithContext

	mu      sync.Mutex
	offline bool            // the last list was from disk
	met     <-chan struct{} // Back at the last list or watch of the hub
	anew    int             // the count of Anew at that time
}

var (
	_ cache.ListerWatcherWithContext = (*keeper)(nil)
	_ cache.ListerWatcher            = (*keeper)(nil)
)

// IsWatchListSemanticsUnSupported turns WatchList off: only of a list it is known
// that it is complete.
func (*keeper) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.Lister. It is never called: informers prefer the one with a
// context.
func (*keeper) List(metav1.ListOptions) (runtime.Object, error) { return nil, errNoContext }

// Watch implements cache.Watcher. It is never called, either.
func (*keeper) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, errNoContext }

var errNoContext = errors.New("lists and watches take a context")

// ListWithContext implements cache.ListerWithContext.
func (k *keeper) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	var kept stored
	first := !k.store.answered()
	if first {
		var err error
		if kept, err = k.store.load(); err != nil {
			k.store.report(err)
		}
	}
	o.Limit = 0 // no paging: what is not in the list is gone
	// The latest: what was seen before may be from a hub that was restored since, and
	// is older now.
	o.ResourceVersion, o.ResourceVersionMatch = "", ""
	asking, cancel := ctx, context.CancelFunc(func() {})
	switch {
	case !first:
		if err := k.await(ctx); err != nil {
			return nil, err
		}
	case kept.whole:
		asking, cancel = context.WithTimeout(ctx, k.store.cache.options.Timeout)
	}
	defer cancel()
	met, anew := k.store.back(), k.store.cache.options.Anew()
	list, err := k.source.ListWithContext(asking, o)
	if err == nil {
		k.store.report(k.store.replace(list))
		k.from(false)
		k.meet(met, anew)
		return list, nil
	}
	if !kept.whole || ctx.Err() != nil {
		return nil, err
	}
	if doubt := k.store.cache.trust(ctx); doubt != nil {
		return nil, errors.Join(doubt, err)
	}
	k.store.cache.options.Log.Info("Starting from disk", "kind", k.store.gvk.Kind, "objects", len(kept.objects), "reason", err.Error())
	k.from(true)
	return kept.list(k.store.cache.options.Scheme, k.store.gvk)
}

func (k *keeper) from(disk bool) {
	k.mu.Lock()
	k.offline = disk
	k.mu.Unlock()
	k.store.mu.Lock()
	k.store.listed = true
	k.store.mu.Unlock()
}

// answered reports whether the hub was listed in this run, so that there is no need for
// the disk's.
func (ks *kindStore) answered() bool {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.listed
}

// WatchWithContext implements cache.WatcherWithContext.
func (k *keeper) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	k.mu.Lock()
	offline := k.offline
	k.mu.Unlock()
	if offline {
		return k.idle(ctx), nil
	}
	if err := k.await(ctx); err != nil {
		return nil, err
	}
	if err := k.compare(ctx, o.ResourceVersion); err != nil {
		return nil, err
	}
	inner, err := k.source.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	return newPersistingWatch(inner, k.store), nil
}

func (k *keeper) meet(back <-chan struct{}, anew int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.met, k.anew = back, anew
}

// compare refuses to resume from a resource version that a hub which was away has not
// reached yet: it was restored from a backup, and a watch would show nothing until then.
func (k *keeper) compare(ctx context.Context, version string) error {
	back, anew := k.store.back(), k.store.cache.options.Anew()
	k.mu.Lock()
	met, was := k.met, k.anew
	k.mu.Unlock()
	switch {
	case was != anew:
		return apierrors.NewResourceExpired("the hub was restored from an earlier time")
	case back == met:
		return nil
	}
	list, err := k.source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	now, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	order, err := resourceversion.CompareResourceVersion(now.GetResourceVersion(), version)
	if err == nil && order < 0 {
		return apierrors.NewResourceExpired("the hub was restored from an earlier time")
	}
	k.meet(back, anew)
	return nil
}

// await waits for a hub that is away, so that the request is sent the moment that it is
// back.
func (k *keeper) await(ctx context.Context) error {
	back := k.store.back()
	if back == nil {
		return nil
	}
	select {
	case <-back:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idle returns a watch without events, which expires once the hub may be there:
// the reflector lists everything again then.
func (k *keeper) idle(ctx context.Context) watch.Interface {
	quit, out := make(chan struct{}), make(chan watch.Event)
	options := k.store.cache.options
	go func() {
		defer close(out)
		timer := options.Clock.NewTimer(options.Again)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-quit:
			return
		case <-k.store.back():
		case <-timer.C():
		}
		expired := apierrors.NewResourceExpired("what is known is from disk").Status()
		select {
		case out <- watch.Event{Type: watch.Error, Object: &expired}:
		case <-quit:
		case <-ctx.Done():
		}
	}()
	return &stream{out: out, quit: quit}
}

// stream is a watch whose events come from a channel.
type stream struct {
	out  chan watch.Event
	quit chan struct{}
	once sync.Once
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop implements watch.Interface.
func (s *stream) Stop() { s.once.Do(func() { close(s.quit) }) }
