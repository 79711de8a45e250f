package status

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter/finished"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/debounce"
)

// delays decide how long changes of bindings' statuses wait for more of them.
type delays struct {
	urgent  *debounce.Debouncer[client.ObjectKey] // changes that must not wait
	partial *debounce.Debouncer[client.ObjectKey] // partial progress
	behind  *debounce.Debouncer[client.ObjectKey] // changes that the template's status shows already
	// arriving are changes that lack what clusters have yet to report that take up others meanwhile.
	arriving *debounce.Debouncer[client.ObjectKey]
}

func newDelays(o Options) delays {
	return delays{
		urgent:   debounce.New[client.ObjectKey](debounce.Options{Wait: o.Debounce, MaxWait: o.Debounce, Clock: o.Clock}),
		partial:  debounce.New[client.ObjectKey](debounce.Options{Wait: o.Wait, MaxWait: o.MaxWait, Clock: o.Clock}),
		behind:   debounce.New[client.ObjectKey](debounce.Options{Wait: o.Behind, MaxWait: 3 * o.Behind, Clock: o.Clock}),
		arriving: debounce.New[client.ObjectKey](debounce.Options{Wait: o.OverdueAfter, MaxWait: o.OverdueAfter, Clock: o.Clock}),
	}
}

// sent ends delays after a write: the template's status is part of every write, the
// binding's only where it has changed.
func (d delays) sent(s *state) {
	d.urgent.Forget(s.key)
	d.partial.Forget(s.key)
	d.arriving.Forget(s.key)
	if s.changed {
		d.behind.Forget(s.key)
	}
}

// forget drops all delays of a binding.
func (d delays) forget(key client.ObjectKey) {
	d.urgent.Forget(key)
	d.partial.Forget(key)
	d.arriving.Forget(key)
	d.behind.Forget(key)
}

// debounce ends the pass where nothing has changed, and delays what can wait for more.
// The binding may report later what the template counts anyway: of a status that
// changes often, it shows fewer steps.
func (r *Reconciler) debounce(_ context.Context, s *state) (loop.Next, error) {
	was, is := s.binding.BindingStatus(), &s.status
	s.changed = !members.Same(*was, *is)
	if s.total == nil && !s.changed {
		r.delays.forget(s.key)
		return loop.Next{Done: true}, nil
	}
	form := form(s)
	trails := s.changed && trailing(was, is) && !ends(s.binding, is)
	if s.total == nil && trails && r.delays.behind.Pending(s.key) {
		wait := r.delays.behind.Delay(s.key, form)
		return loop.Next{Done: wait > 0, After: max(wait, 0)}, nil
	}
	wait := r.delays.partial.Delay(s.key, form)
	if complete(was) && !complete(is) { // what another cluster reports makes it whole again
		wait = r.delays.partial.Await(s.key, form)
		if r.arrivals.awaited(s) {
			wait = max(wait, min(r.delays.arriving.Delay(s.key, ""), r.opts.MaxWait))
		}
	}
	if urgent(was, is) {
		wait = min(wait, r.delays.urgent.Delay(s.key, ""))
	}
	if wait > 0 {
		return loop.Next{Done: true, After: wait}, nil
	}
	if s.total != nil && trails {
		wait = r.delays.behind.Delay(s.key, form)
		s.changed = wait <= 0
	}
	return loop.Next{After: max(wait, 0)}, nil
}

// form distinguishes one change from another by what was reported.
func form(s *state) string {
	var out bytes.Buffer
	for i := range s.items {
		item := &s.items[i]
		_, _ = fmt.Fprintf(&out, "%s %t %s ", item.ClusterName, item.Applied, item.Health)
		if item.Status != nil {
			_, _ = out.Write(item.Status.Raw)
		}
	}
	return members.Hash(out.Bytes())
}

// trailing reports whether two statuses differ in nothing but what members count. How an
// object fares is written with the template, and before it: clients go by either.
func trailing(was, is *workv1alpha2.ResourceBindingStatus) bool {
	return members.Same(withoutCounts(was), withoutCounts(is))
}

// ends reports whether a status says for the first time that what a binding stands for has come to its end in a cluster: it is not
// moved off that, by what its binding says.
func ends(b workv1alpha2.Binding, is *workv1alpha2.ResourceBindingStatus) bool {
	kind := bindings.TemplateOf(b).GroupKind()
	return finished.Ends(kind) && slices.ContainsFunc(is.AggregatedStatus, func(now workv1alpha2.AggregatedStatusItem) bool {
		return hasEnded(kind, now) && !slices.ContainsFunc(b.BindingStatus().AggregatedStatus, func(was workv1alpha2.AggregatedStatusItem) bool {
			return was.ClusterName == now.ClusterName && hasEnded(kind, was)
		})
	})
}

func hasEnded(kind schema.GroupKind, item workv1alpha2.AggregatedStatusItem) bool {
	return item.Status != nil && finished.Is(kind, item.Status.Raw)
}

// withoutCounts returns a binding's status without the counts of members.
func withoutCounts(status *workv1alpha2.ResourceBindingStatus) workv1alpha2.ResourceBindingStatus {
	out := *status
	out.AggregatedStatus = slices.Clone(status.AggregatedStatus)
	for i := range out.AggregatedStatus {
		out.AggregatedStatus[i].Status = nil
	}
	return out
}

// urgent reports whether the change must not wait: it completes something, or
// it is a failure. A new cluster that has not reported yet is neither: its
// report will come.
func urgent(was, is *workv1alpha2.ResourceBindingStatus) bool {
	if complete(is) && !complete(was) ||
		healthy(is) && !healthy(was) ||
		turned(was, is, workv1alpha2.Scheduled) || turned(was, is, workv1alpha2.Interpreted) || turned(was, is, workv1alpha2.Evictable) {
		return true
	}
	before := make(map[string]*workv1alpha2.AggregatedStatusItem, len(was.AggregatedStatus))
	for i := range was.AggregatedStatus {
		before[was.AggregatedStatus[i].ClusterName] = &was.AggregatedStatus[i]
	}
	return slices.ContainsFunc(is.AggregatedStatus, func(now workv1alpha2.AggregatedStatusItem) bool {
		item := before[now.ClusterName]
		return item != nil && (item.Applied && !now.Applied ||
			well(*item) && !well(now))
	})
}

// turned reports whether a condition has become False.
func turned(was, is *workv1alpha2.ResourceBindingStatus, kind string) bool {
	return conditionStatus(is, kind) == metav1.ConditionFalse && conditionStatus(was, kind) != metav1.ConditionFalse
}

func conditionStatus(status *workv1alpha2.ResourceBindingStatus, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// complete reports whether every cluster of the placement has the manifest.
func complete(status *workv1alpha2.ResourceBindingStatus) bool {
	return conditionStatus(status, workv1alpha2.FullyApplied) == metav1.ConditionTrue
}

// healthy reports whether every cluster of a complete binding reports health.
func healthy(status *workv1alpha2.ResourceBindingStatus) bool {
	return complete(status) && !slices.ContainsFunc(status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
		return !well(item)
	})
}

// well reports whether a cluster's object is healthy, as it is shown to people.
func well(item workv1alpha2.AggregatedStatusItem) bool {
	return rollup.Shown(item.Health, item.Status) == workv1alpha2.ResourceHealthy
}
