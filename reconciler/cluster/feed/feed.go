package feed

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// TrimMetadata keeps the name: no read is in flight these objects.
func TrimMetadata(obj any) (any, error) {
	partial, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: partial.Name, ResourceVersion: partial.ResourceVersion}}, nil
}

// New returns an informer that keeps what trim leaves, and that calls
// changed, if given, on everything that happens after its first list.
func New(client any, source *cache.ListWatch, example runtime.Object, trim cache.TransformFunc, changed func()) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(source, client), example, 0, cache.Indexers{})
	if err := informer.SetTransform(trim); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	if changed == nil {
		return informer, nil
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, first bool) {
			if !first {
				changed()
			}
		},
		UpdateFunc: func(_, _ any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	return informer, err
}

// Feed passes all that the informer sees to the handler, and returns whether the handler has
// got all that there was at first.
func Feed(ctx context.Context, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) cache.InformerSynced {
	synced, err := informer.AddEventHandler(handler)
	if err != nil { // it has stopped
		log.FromContext(ctx).Error(err, "follow a member")
		return func() bool { return false }
	}
	return synced.HasSynced
}
