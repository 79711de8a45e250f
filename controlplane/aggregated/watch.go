package aggregated

import (
	"context"
	"errors"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// ErrNotWatched is the error of Watch for what only a request to the server can watch.
var ErrNotWatched = errors.New("it is not watched in process")

// longestWatch ends a watch that has no timeout of its own.
const longestWatch = time.Hour

// Watch returns the events of all objects of the kind of, in its stored version, that a
// request with these options would get. It takes them from the server's cache, so that they
// need not be encoded and decoded, which costs more than the write itself. The caller must
// not change the objects: they share memory with that cache. The watch ends with ctx.
// Errors: ErrNotWatched for other kinds and for selectors.
func (k *Kinds) Watch(ctx context.Context, of runtime.Object, options metav1.ListOptions) (watch.Interface, error) {
	switch of.(type) {
	case *workv1alpha1.Work:
		return follow[*workv1alpha1.Work](ctx, k.stores[workResource], options)
	case *workv1alpha2.ResourceBinding:
		return follow[*workv1alpha2.ResourceBinding](ctx, k.stores[bindingResource], options)
	case *workv1alpha2.ClusterResourceBinding:
		return follow[*workv1alpha2.ClusterResourceBinding](ctx, k.stores[clusterBindingResource], options)
	}
	return nil, ErrNotWatched
}

func follow[P object](ctx context.Context, store *genericregistry.Store, options metav1.ListOptions) (watch.Interface, error) {
	if store == nil || options.LabelSelector != "" || options.FieldSelector != "" {
		return nil, ErrNotWatched
	}
	asked := &metainternalversion.ListOptions{
		Watch:                true,
		AllowWatchBookmarks:  options.AllowWatchBookmarks,
		ResourceVersion:      options.ResourceVersion,
		ResourceVersionMatch: options.ResourceVersionMatch,
		SendInitialEvents:    options.SendInitialEvents,
	}
	metainternalversion.SetListOptionsDefaults(asked, utilfeature.DefaultFeatureGate.Enabled(features.WatchList))
	lasts := longestWatch
	if options.TimeoutSeconds != nil {
		lasts = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, stop := context.WithTimeout(ctx, lasts)
	from, err := store.Watch(ctx, asked)
	if err != nil {
		stop()
		return nil, err
	}
	f := &follower{stop: stop, events: make(chan watch.Event)}
	go func() {
		defer close(f.events)
		defer stop()
		defer from.Stop()
		for event := range from.ResultChan() {
			event.Object = opened[P](ctx, store, event.Object)
			select {
			case f.events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return f, nil
}

// opened returns an event's object, which the server wraps to encode it once for many
// watchers. It is the one that the server's cache has, if that is the same version, or else
// a copy.
func opened[P object](ctx context.Context, store *genericregistry.Store, obj runtime.Object) runtime.Object {
	wrapped, ok := obj.(runtime.CacheableObject)
	if !ok {
		return obj
	}
	if says, ok := obj.(metav1.Object); ok {
		if kept, ok := keptOf[P](ctx, store, says); ok {
			return kept
		}
	}
	return wrapped.GetObject()
}

// follower passes on the events of a store.
type follower struct {
	stop   context.CancelFunc
	events chan watch.Event
}

// Stop ends the watch.
func (f *follower) Stop() { f.stop() }

// ResultChan is closed when the watch ends.
func (f *follower) ResultChan() <-chan watch.Event { return f.events }
