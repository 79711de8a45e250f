package bindings

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// RecalledIn returns the Work in a cluster that a former binding of b's template left there, and whose removal is recalled; nil if there
// is none. b has no Work of its own in that cluster before it is gone, as both have one name. The Work is shared with the cache.
func RecalledIn(ctx context.Context, hub client.Reader, b workv1alpha2.Binding, cluster string) (*workv1alpha1.Work, error) {
	ref, work := &b.BindingSpec().Resource, &workv1alpha1.Work{}
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName(ref.Kind, ref.Name, ref.Namespace)}
	switch err := hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the work of %s for cluster %s: %w", ref.Name, cluster, err)
	}
	if owner, owned := OwnerOf(work); !owned || owner != client.ObjectKeyFromObject(b) || !staleremoval.Recalled(work) {
		return nil, nil
	}
	return work, nil
}
