package bindings

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// DeletedSince returns since when the binding of a Work is being deleted; nil while it is to
// stay, and where the cache has no binding that the Work is of. A Work may go by that
// alone, without being deleted first: see EndsBeside.
func DeletedSince(ctx context.Context, hub client.Reader, w *workv1alpha1.Work) (*metav1.Time, error) {
	key, known := OwnerOf(w)
	if !known {
		return nil, nil
	}
	b, found, err := Get(ctx, hub, key)
	if err != nil || !found || b.GetLabels()[IDLabel(b)] != IDOf(w) {
		return nil, err
	}
	return b.GetDeletionTimestamp(), nil
}

// EndsBeside reports whether a Work may be left to the execution loop once its binding is
// being deleted: nobody has deleted it yet, and nobody else holds it. One of a claim is deleted
// with the word whether the claim goes, too.
func EndsBeside(w *workv1alpha1.Work) bool {
	if !w.DeletionTimestamp.IsZero() || !slices.Equal(w.Finalizers, []string{workv1alpha2.ExecutionControllerFinalizer}) {
		return false
	}
	_, claim := volumes.Carried(w)
	return !claim
}
