package health

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Keeping returns a part for each volume claim that the owner applied and that stays in clusters although its binding
// is not for them any more. The status of the Clusters says where claims stay.
func (r *Reader) Keeping(ctx context.Context, owner client.ObjectKey, entries []inventory.Entry) ([]rollup.Part, error) {
	claims := slices.DeleteFunc(slices.Clone(entries), func(e inventory.Entry) bool { return !volumes.IsVolumeClaim(e.ID.GroupKind) })
	if len(claims) == 0 {
		return nil, nil
	}
	var clusters clusterv1alpha1.ClusterList
	if err := r.Hub.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	kept := volumes.ByCluster(clusters.Items)
	var parts []rollup.Part
	for _, e := range claims {
		in := kept[types.NamespacedName{Namespace: e.ID.Namespace, Name: e.ID.Name}]
		if len(in) == 0 {
			continue
		}
		binding, err := r.binding(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		if in = unasked(in, binding); len(in) == 0 {
			continue
		}
		template, err := r.claim(ctx, owner, e.ID)
		if err != nil {
			return nil, err
		}
		if template != nil {
			parts = append(parts, rollup.Part{Object: nameOf(e.ID, template), Kept: in})
		}
	}
	return parts, nil
}

// unasked returns those of the clusters for which the binding is not; all of them if there is no binding.
func unasked(clusters []string, b workv1alpha2.Binding) []string {
	if b == nil || b.GetDeletionTimestamp() != nil {
		return clusters
	}
	targets := plan.Targets(plan.SpecOf(b))
	return slices.DeleteFunc(slices.Clone(clusters), func(name string) bool {
		return slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
	})
}

// claim returns a volume claim on the control plane if the owner applied it; nil if not, or if there is none.
func (r Deps) claim(ctx context.Context, owner client.ObjectKey, id inventory.ID) (*metav1.PartialObjectMetadata, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(id.GroupKind.Kind))
	if err := r.Hub.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, obj); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s: %w", inventory.Describe(id), err)
		}
		return nil, nil
	}
	if by, known := inventory.OwnerOf(obj); !known || by != owner {
		return nil, nil
	}
	return obj, nil
}

// nameOf returns how package rollup names an object. It leaves out the name if that contains the value of a Secret.
func nameOf(id inventory.ID, obj client.Object) string {
	if obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == gitopsv1alpha1.HoldsInName {
		id.Name = "***"
	}
	return objectName(id)
}

// unbinding returns the clusters that have not removed or released a volume claim yet whose binding is gone: its Works
// outlive the binding. False means that there are none.
func (r Deps) unbinding(ctx context.Context, owner client.ObjectKey, id inventory.ID, silent rollup.Silences) (rollup.Part, bool, error) {
	key := client.ObjectKey{Namespace: id.Namespace, Name: workv1alpha2.BindingName(id.GroupKind.Kind, id.Name)}
	works, err := r.indexed(ctx, client.MatchingFields{bindings.WorksByOwner: key.String()})
	if err != nil {
		return rollup.Part{}, false, err
	}
	works = slices.DeleteFunc(works, func(w *workv1alpha1.Work) bool {
		by, carried := carriedBy(w, id)
		return w.DeletionTimestamp == nil || !carried || by != owner
	})
	part := rollup.Part{Object: objectName(id), Leaving: leavingParts(works, silent)}
	return part, len(works) > 0, nil
}
