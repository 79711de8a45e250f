package situation

import (
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/departing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/rescheduled"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/rewritten"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unposted"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// asides collects what is worth a look about templates, but is not a problem.
type asides struct {
	drifted []drift
	// released are templates that still run although no policy selects them any more.
	released []inventory.ID
	// staying are templates that should leave a cluster but fit nowhere else: they are problems.
	staying []staying
	// reported are templates that already have a problem with the same message.
	reported  []inventory.ID
	suspended []suspension
	// halted are the suspended sources and Kustomizations.
	halted   []inventory.ID
	passed   passed
	leaving  departing.Templates
	moved    rescheduled.Templates
	unposted unposted.Statuses
	taken    rewritten.Sources
}

// take adds a template by its binding. kept are the clusters in which its dispatching is
// suspended, silent those whose content is not known because they do not answer, and gone those
// from which somebody removed it, which is shown as a problem.
func (a *asides) take(b workv1alpha2.Binding, kept, gone []string, silent rollup.Silences, now time.Time) {
	a.passed.take(b)
	a.leaving.From(b, a.passed.clusters, silent, now)
	id := idOf(b.BindingSpec().Resource)
	a.moved.Take(b, id, now)
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

// halt adds a suspended source or Kustomization.
func (a *asides) halt(kind, namespace, name string) {
	a.halted = append(a.halted, inventory.ID{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name})
}

// heardOf returns the binding's message about clusters whose object differs from the template,
// without the clusters that are shown elsewhere or do not answer; empty if none
// remains.
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
	if all { // also messages that name no cluster
		return message
	}
	return strings.Join(drifts, "; ")
}

// notes returns one note of each kind.
func (a *asides) notes() []Note {
	left := slices.DeleteFunc(slices.Clone(a.released), func(id inventory.ID) bool { return slices.Contains(a.reported, id) })
	var moved []Note
	if id, message, some := a.moved.Text(); some {
		moved = []Note{{Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name, Message: message, Next: wording.Explains(id)}}
	}
	if id, message, next, some := a.taken.Text(); some {
		moved = append(moved, Note{Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name, Message: message, Next: next})
	}
	return slices.Concat(moved, released(left), drifting(a.drifted), suspended(a.suspended), halted(a.halted), a.passed.notes(), a.unpostedNotes())
}

// halted returns notes about suspended objects, one for each kind: commits get no further than
// these, and nothing else shows that.
func halted(all []inventory.ID) []Note {
	var out []Note
	for _, kind := range []struct{ name, message, next string }{
		{sourcev1.GitRepositoryKind, "it is suspended: no commit is fetched", "flotilla resume source git "},
		{sourcev1.OCIRepositoryKind, "it is suspended: no artifact is fetched", "flotilla resume source oci "},
		{sourcev1.BucketKind, "it is suspended: no object is fetched", "flotilla resume source bucket "},
		{"Receiver", "it is suspended: its address answers 404", "flotilla resume receiver "},
		{kustomizev1.KustomizationKind, "it is suspended: no commit goes further, and what is changed on the control plane stays so", "flotilla resume kustomization "},
	} {
		ids := slices.DeleteFunc(slices.Clone(all), func(id inventory.ID) bool { return id.GroupKind.Kind != kind.name })
		if len(ids) > 0 {
			out = append(out, Note{Kind: kind.name, Namespace: ids[0].Namespace, Name: ids[0].Name,
				Message: kind.message + wording.Besides(ids), Next: kind.next + ids[0].Name + wording.InNamespace(ids[0].Namespace)})
		}
	}
	return out
}

// suspension is a template whose dispatching is suspended in some clusters, which are sorted.
type suspension struct {
	of       inventory.ID
	clusters []string
}

// suspended returns a note about templates whose dispatching is suspended: clusters run the
// version from before that, which may be old. It returns no note without such templates.
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
		Message: "dispatching is suspended: an older version, or nothing, may run in " + wording.Some(all[0].clusters) + wording.Besides(ids),
		Next:    "take spec.suspension out of its policy once changes are to go there; flotilla explain " + wording.Object(first)}}
}
