package bindings

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// EndsSince returns since when a Work goes by what its binding says alone, without being deleted first: the binding is being
// deleted, or it has left the Work's cluster and says so. Nil for all others, and where the cache has no binding
// that the Work is of. See EndsBeside.
func EndsSince(ctx context.Context, hub client.Reader, w *workv1alpha1.Work) (*metav1.Time, error) {
	key, known := OwnerOf(w)
	if !known {
		return nil, nil
	}
	b, found, err := Get(ctx, hub, key)
	if err != nil || !found || b.GetLabels()[IDLabel(b)] != IDOf(w) {
		return nil, err
	}
	if since := b.GetDeletionTimestamp(); since != nil {
		return since, nil
	}
	since := placement.EndsBeside(b, w.UID)
	if cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); since == nil || slices.Contains(plan.Keeps(plan.SpecOf(b)), cluster) {
		return nil, nil // or it came back
	}
	return since, nil
}

// EndsBeside reports whether a Work may be left to the execution loop once its binding is
// being deleted, or has left its cluster: nobody has deleted it yet, and nobody else holds it. One of a claim is deleted
// with the word whether the claim goes, too.
func EndsBeside(w *workv1alpha1.Work) bool {
	if !w.DeletionTimestamp.IsZero() || !slices.Equal(w.Finalizers, []string{workv1alpha2.ExecutionControllerFinalizer}) {
		return false
	}
	_, claim := volumes.Carried(w)
	return !claim
}
