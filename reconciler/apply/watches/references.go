package watches

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// enabled is the value of the label.
const enabled = "Enabled"

// watchReferences calls changed with each labelled ConfigMap or Secret that is created, changed or deleted while
// mgr runs. It does not call it with those that exist at the start.
func watchReferences(mgr ctrl.Manager, changed func(ctx context.Context, kind string, key client.ObjectKey)) error {
	labelled, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{meta.LabelKeyWatch: enabled}),
		DefaultTransform:     nothingElse,
	})
	if err != nil {
		return fmt.Errorf("set up the watch on what Kustomizations refer to: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, kind := range []string{"ConfigMap", "Secret"} {
			if err := watch(ctx, labelled, kind, changed); err != nil {
				return fmt.Errorf("watch each %s that Kustomizations refer to: %w", kind, err)
			}
		}
		return labelled.Start(ctx)
	}))
}

func watch(ctx context.Context, from cache.Cache, kind string, changed func(context.Context, string, client.ObjectKey)) error {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	informer, err := from.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(metadataHandler(func(key client.ObjectKey) { changed(ctx, kind, key) }))
	return err
}

// nothingElse reduces an object to what identifies it and its version, to save memory.
func nothingElse(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: obj.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion,
	}}, nil
}

func metadataHandler(changed func(client.ObjectKey)) toolscache.ResourceEventHandler {
	report := func(in any) {
		if tombstone, ok := in.(toolscache.DeletedFinalStateUnknown); ok {
			in = tombstone.Obj
		}
		if obj, ok := in.(*metav1.PartialObjectMetadata); ok {
			changed(client.ObjectKeyFromObject(obj))
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(in any, first bool) {
			if !first {
				report(in)
			}
		},
		UpdateFunc: func(before, after any) {
			was, okWas := before.(*metav1.PartialObjectMetadata)
			is, okIs := after.(*metav1.PartialObjectMetadata)
			if okWas && okIs && was.ResourceVersion != is.ResourceVersion {
				report(after)
			}
		},
		DeleteFunc: report,
	}
}
