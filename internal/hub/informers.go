package hub

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// WatchFunc watches all objects of a kind without a request to the hub. It returns an error
// if it cannot.
type WatchFunc func(ctx context.Context, of runtime.Object, options metav1.ListOptions) (watch.Interface, error)

// newInformer makes the informers of a cache.
type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// informers returns a newInformer whose informers watch by inProcess what it can watch, and
// all else by requests. nil means that all is watched by requests.
func informers(inProcess WatchFunc) newInformer {
	if inProcess == nil {
		return nil
	}
	return func(requests toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		ordinary := toolscache.ToListerWatcherWithContext(requests)
		return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
			ListWithContextFunc: ordinary.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if events, err := inProcess(ctx, of, options); err == nil {
					return events, nil
				}
				return ordinary.WatchWithContext(ctx, options) // its error is one that informers know
			},
		}, of, resync, indexers)
	}
}
