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

// Keeping returns a part per claim that the named Kustomization applied and that stays in clusters although nobody asks
// for it there: as these say.
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

// unasked are those of the clusters that a binding is not for.
func unasked(clusters []string, b workv1alpha2.Binding) []string {
	if b == nil || b.GetDeletionTimestamp() != nil {
		return clusters
	}
	targets := plan.Targets(plan.SpecOf(b))
	return slices.DeleteFunc(slices.Clone(clusters), func(name string) bool {
		return slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
	})
}

// claim returns a claim of the control plane that the named Kustomization applied, nil if there is none.
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

// nameOf names an object as package rollup does: without its name, where text of a Secret is in that.
func nameOf(id inventory.ID, obj client.Object) string {
	if obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == gitopsv1alpha1.HoldsInName {
		id.Name = "***"
	}
	return objectName(id)
}

// unbinding returns the clusters that have yet to let go of a claim which nobody carries any more, or to leave it: its Works
// outlive its binding.
func (r Deps) unbinding(ctx context.Context, owner client.ObjectKey, id inventory.ID, silent rollup.Silences) (rollup.Part, bool, error) {
	key := client.ObjectKey{Namespace: id.Namespace, Name: workv1alpha2.BindingName(id.GroupKind.Kind, id.Name)}
	works, err := r.indexed(ctx, client.MatchingFields{bindings.WorksByOwner: key.String()})
	if err != nil {
		return rollup.Part{}, false, err
	}
	works = slices.DeleteFunc(works, func(w *workv1alpha1.Work) bool {
		by, held := carriedBy(w, id)
		return w.DeletionTimestamp == nil || !held || by != owner
	})
	part := rollup.Part{Object: objectName(id), Leaving: leavingParts(works, silent)}
	return part, len(works) > 0, nil
}
