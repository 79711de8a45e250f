package aggregated

import (
	"bytes"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Kinds that loops cache as well.
var (
	workResource           = schema.GroupResource{Group: workv1alpha1.GroupName, Resource: "works"}
	bindingResource        = schema.GroupResource{Group: workv1alpha2.GroupName, Resource: "resourcebindings"}
	clusterBindingResource = schema.GroupResource{Group: workv1alpha2.GroupName, Resource: "clusterresourcebindings"}
)

// Shared returns an object equal to obj, which a client in this process has read, that
// shares its memory with the server's own cache. Managed fields are left out. The caller
// must not change the result. It returns obj itself if the cache has another version, or if
// obj is of another kind, so the content is always that of obj.
func (k *Kinds) Shared(ctx context.Context, obj runtime.Object) runtime.Object {
	switch obj := obj.(type) {
	case *workv1alpha1.Work:
		if kept, ok := keptOf[*workv1alpha1.Work](ctx, k.stores[workResource], obj); ok && sameBytes(kept, obj) {
			kept.TypeMeta, kept.ManagedFields = obj.TypeMeta, nil
			return kept
		}
	case *workv1alpha2.ResourceBinding:
		if kept, ok := keptOf[*workv1alpha2.ResourceBinding](ctx, k.stores[bindingResource], obj); ok {
			kept.TypeMeta, kept.ManagedFields = obj.TypeMeta, nil
			return kept
		}
	case *workv1alpha2.ClusterResourceBinding:
		if kept, ok := keptOf[*workv1alpha2.ClusterResourceBinding](ctx, k.stores[clusterBindingResource], obj); ok {
			kept.TypeMeta, kept.ManagedFields = obj.TypeMeta, nil
			return kept
		}
	}
	return obj
}

// keptOf returns what obj stands for from the server's cache. ok is true only if that is the
// same version of the same object.
func keptOf[P object](ctx context.Context, store *genericregistry.Store, obj metav1.Object) (kept P, ok bool) {
	if store == nil {
		return kept, false
	}
	const cached = "0" // whatever version the cache has, without waiting
	ctx = genericapirequest.WithNamespace(ctx, obj.GetNamespace())
	found, err := store.Get(ctx, obj.GetName(), &metav1.GetOptions{ResourceVersion: cached})
	if err != nil {
		return kept, false // it was deleted: the client will get an event
	}
	kept, ok = found.(P)
	return kept, ok && kept.GetUID() == obj.GetUID() && kept.GetResourceVersion() == obj.GetResourceVersion()
}

// sameBytes reports whether the manifests of two Works have the same bytes, by which loops
// compare them.
func sameBytes(a, b *workv1alpha1.Work) bool {
	return slices.EqualFunc(a.Spec.Workload.Manifests, b.Spec.Workload.Manifests, func(a, b workv1alpha1.Manifest) bool {
		return bytes.Equal(a.Raw, b.Raw)
	})
}
