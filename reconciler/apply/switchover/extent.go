package switchover

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/contents"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// Begins returns what of a Kustomization is switched from now on, before any of a plan is written that needs a switch. Where it defines
// something, that is written first, and waits for the rest if that may change what of it clusters get: its namespaces by
// cluster-wide overrides, its kinds by policies, too, and both by what others write that are switched with it.
func Begins(plan applier.Plan, deleted []inventory.Entry, others bool, stated []metav1.Condition) revisiongate.Extent {
	switch {
	case !plan.Defines():
		return revisiongate.All
	case revisiongate.HoldsAll(stated): // since a revision before
		return revisiongate.None
	}
	var written []schema.GroupKind
	for _, c := range plan.Changes {
		if c.Writes() {
			written = append(written, c.Desired.GroupVersionKind().GroupKind())
		}
	}
	changed := slices.Clone(written)
	for _, e := range deleted {
		changed = append(changed, e.ID.GroupKind)
	}
	rule := func(kind string) bool {
		return slices.Contains(changed, schema.GroupKind{Group: policyv1alpha1.GroupVersion.Group, Kind: kind})
	}
	namespaces := slices.Contains(written, schema.GroupKind{Kind: "Namespace"})
	kinds := slices.ContainsFunc(written, contents.Defines)
	switch {
	case (namespaces || kinds) && (others || rule(policyv1alpha1.ResourceKindClusterOverridePolicy)),
		kinds && rule(policyv1alpha1.ResourceKindClusterPropagationPolicy):
		return revisiongate.Definitions
	default:
		return revisiongate.None
	}
}
