package cascadingdeletion

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/contents"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// clusters counts the clusters from which a Namespace or a CustomResourceDefinition is removed along with it; 0 for
// other kinds.
func (c *Counter) clusters(ctx context.Context, id inventory.ID) (int, error) {
	if id.GroupKind != namespaceKind && !contents.Defines(id.GroupKind) {
		return 0, nil
	}
	b, found, err := bindings.Carrying(ctx, c.hub, id.GroupKind, client.ObjectKey{Name: id.Name})
	if err != nil {
		return 0, err
	}
	if found {
		return len(plan.Targets(plan.SpecOf(b))), nil
	}
	if id.GroupKind != namespaceKind {
		return 0, nil
	}
	in := map[string]bool{} // a Namespace is synced to clusters without a binding, too: count its Works
	for _, name := range []string{workv1alpha2.WorkName(namespaceKind.Kind, id.Name, ""), workv1alpha2.FormerWorkName(namespaceKind.Kind, id.Name, "")} {
		works := &metav1.PartialObjectMetadataList{}
		works.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
		if err := c.hub.List(ctx, works, client.MatchingFields{"metadata.name": name}); err != nil {
			return 0, fmt.Errorf("list the works of %s: %w", inventory.Describe(id), err)
		}
		for i := range works.Items {
			if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(works.Items[i].Namespace); ok {
				in[cluster] = true
			}
		}
	}
	return len(in), nil
}
