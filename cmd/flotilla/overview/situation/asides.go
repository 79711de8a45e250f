package situation

import (
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// asides are what is no problem of templates, and worth a look.
type asides struct {
	drifted []drift
	// released are templates that run as they were when a policy carried them last.
	released  []inventory.ID
	suspended []suspension
}

// take adds a template by its binding. kept are the clusters that its changes are kept from.
func (a *asides) take(b workv1alpha2.Binding, kept []string) {
	id := idOf(b.BindingSpec().Resource)
	if c := apimeta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Drifted); c != nil && c.Status == metav1.ConditionTrue {
		a.drifted = append(a.drifted, drift{id, c.Message})
	}
	if rollup.Released(b) {
		a.released = append(a.released, id)
	}
	if len(kept) > 0 {
		a.suspended = append(a.suspended, suspension{id, kept})
	}
}

// notes are one of each sort.
func (a *asides) notes() []Note {
	return slices.Concat(released(a.released), drifting(a.drifted), suspended(a.suspended))
}

// suspension is a template that changes are kept from in some clusters, sorted.
type suspension struct {
	of       inventory.ID
	clusters []string
}

// suspended is a note on templates that run as they were when their dispatching was
// suspended, which may be long ago; none if there are none.
func suspended(all []suspension) []Note {
	if len(all) == 0 {
		return nil
	}
	first := all[0].of
	ids := make([]inventory.ID, len(all))
	for i := range all {
		ids[i] = all[i].of
	}
	return []Note{{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name,
		Message: "dispatching is suspended: an older version, or nothing, may run in " + some(all[0].clusters) + besides(ids),
		Next:    "take spec.suspension out of its policy once changes are to go there; flotilla explain " + strings.ToLower(first.GroupKind.Kind) + "/" + first.Name + inNamespace(first.Namespace)}}
}
