package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// missing returns a part for each policy that the owner applied and that names clusters which do not exist. The part
// is about the policy, as the templates that it selects may be of another Kustomization, or not exist yet.
func missing(owner client.ObjectKey, entries []inventory.Entry, policies selection, fleet []string) []rollup.Part {
	var parts []rollup.Part
	for _, p := range policies.policies {
		if !isOwn(owner, p) || p.GetDeletionTimestamp() != nil {
			continue
		}
		id := inventory.ID{Namespace: p.GetNamespace(), Name: p.GetName(), GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: propagation.KindOf(p)}}
		if !slices.ContainsFunc(entries, func(e inventory.Entry) bool { return e.ID == id }) {
			continue
		}
		if absent := propagation.Missed(&p.PropagationSpec().Placement, fleet); len(absent) > 0 {
			parts = append(parts, rollup.Part{Object: nameOf(id, p), Absent: propagation.Redact(p, absent)})
		}
	}
	return parts
}
