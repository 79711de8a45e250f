package situation

import (
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// asides are what is no problem of templates, and worth a look.
type asides struct {
	drifted []drift
	// released are templates that run as they were when a policy carried them last.
	released []inventory.ID
	// staying must leave clusters, and have no other place.
	staying []staying
	// reported are templates of which a problem says the same.
	reported  []inventory.ID
	suspended []suspension
	// halted are the sources and the Kustomizations that somebody suspended.
	halted   []inventory.ID
	passed   passed
	unposted unposted
}

// take adds a template by its binding. kept are the clusters that its changes are kept from;
// what those of silent hold is not known. What others removed in the clusters of gone is shown
// as a problem.
func (a *asides) take(b workv1alpha2.Binding, kept, gone []string, silent rollup.Silences) {
	a.passed.take(b)
	id := idOf(b.BindingSpec().Resource)
	c := apimeta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Drifted)
	if c != nil && c.Status == metav1.ConditionTrue {
		if message := heardOf(b, c.Message, gone, silent); message != "" {
			a.drifted = append(a.drifted, drift{id, message, plan.SuspendedSomewhere(b.BindingSpec())})
		}
	}
	if rollup.Released(b) && len(plan.Targets(plan.SpecOf(b))) > 0 {
		a.released = append(a.released, id)
	}
	if c := apimeta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Evictable); c != nil && c.Status == metav1.ConditionFalse {
		a.staying = append(a.staying, staying{id, cannotMove, strings.TrimSuffix(c.Message, ".")})
	}
	if len(kept) > 0 {
		a.suspended = append(a.suspended, suspension{id, kept})
	}
}

// halt adds a source or a Kustomization that somebody suspended.
func (a *asides) halt(kind, namespace, name string) {
	a.halted = append(a.halted, inventory.ID{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name})
}

// heardOf is what a binding says of clusters that hold something else than its template,
// without those that are shown otherwise, and those of which nothing is heard; empty where none
// is left.
func heardOf(b workv1alpha2.Binding, message string, gone []string, silent rollup.Silences) string {
	var drifts []string
	all := true
	for _, item := range b.BindingStatus().AggregatedStatus {
		switch _, is := silent[item.ClusterName]; {
		case item.Drift == "":
		case is || slices.Contains(gone, item.ClusterName):
			all = false
		default:
			drifts = append(drifts, item.ClusterName+": "+item.Drift)
		}
	}
	if all { // also what says nothing of single clusters
		return message
	}
	return strings.Join(drifts, "; ")
}

// notes are one of each sort.
func (a *asides) notes() []Note {
	left := slices.DeleteFunc(slices.Clone(a.released), func(id inventory.ID) bool { return slices.Contains(a.reported, id) })
	return slices.Concat(released(left), drifting(a.drifted), stayingNotes(a.staying), suspended(a.suspended), halted(a.halted), a.passed.notes(), a.unposted.notes())
}

// halted are notes on what somebody suspended, one for each kind: commits end there, and
// nothing says so until somebody misses one.
func halted(all []inventory.ID) []Note {
	var out []Note
	for _, kind := range []struct{ name, message, next string }{
		{sourcev1.GitRepositoryKind, "it is suspended: no commit is fetched", "flotilla resume source git "},
		{kustomizev1.KustomizationKind, "it is suspended: no commit goes further, and what is changed on the control plane stays so", "flotilla resume kustomization "},
	} {
		var ids []inventory.ID
		for _, id := range all {
			if id.GroupKind.Kind == kind.name {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		out = append(out, Note{Kind: kind.name, Namespace: ids[0].Namespace, Name: ids[0].Name,
			Message: kind.message + besides(ids), Next: kind.next + ids[0].Name + inNamespace(ids[0].Namespace)})
	}
	return out
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
