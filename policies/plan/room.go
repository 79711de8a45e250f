package plan

import (
	"cmp"
	"maps"
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/answers"
)

// order returns the indices of the templates in the order in which they are decided.
func (in *FleetInput) order(now *bound) []int {
	out := definitionsFirst(in.Templates)
	if !in.Reserves {
		return out
	}
	priority := func(i int) int32 {
		if b := now.of(in.Templates[i]); b != nil && b.BindingSpec().SchedulePriority != nil {
			return b.BindingSpec().SchedulePriority.Priority
		}
		return 0
	}
	definitions := slices.IndexFunc(out, func(i int) bool { return !isDefinition(in.Templates[i]) })
	slices.SortStableFunc(out[max(definitions, 0):], func(a, b int) int {
		x, y := in.Templates[a], in.Templates[b]
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return out
}

// place decides where a binding runs, if that is due, and writes it there.
func (in *FleetInput) place(out *TemplatePlan, current workv1alpha2.Binding, now *bound, snap placement.Snapshot) {
	spec := out.Binding.BindingSpec()
	situation := placement.Situation{Clusters: snap, Peers: placement.PeersOf(out.Binding, now.all), Now: in.Now}
	situation.Estimates = placement.Recalled(current, out.Binding, snap, in.Now) // no estimator is asked here
	for _, name := range in.Reported {
		delete(situation.Estimates, name)
	}
	if in.Reserves && placement.IsWorkload(spec) {
		situation.Clusters = snap.WithReservations(now.loads)
		for name, answer := range situation.Estimates {
			if load := now.loads[name]; load != nil {
				situation.Estimates[name] = answer.Since(0, placement.NeedOf(spec), *load)
			}
		}
	}
	decision, changed := placement.Decide(out.Binding, situation, in.Scheduling)
	if changed && in.Reserves { // what moves goes where there is room now, and not where there was when it was decided last
		maps.DeleteFunc(situation.Estimates, func(_ string, a estimate.Answer) bool { return a.Age > answers.MaxAge })
		opts := in.Scheduling
		opts.LeastCapacity = true
		decision, changed = placement.Decide(out.Binding, situation, opts)
	}
	out.Err = decision.Err
	if changed {
		had := slices.Clone(spec.Clusters)
		out.Placed = decision.Why
		decision.Put(out.Binding)
		now.take(had, spec)
		return
	}
	if left, fewer := placement.Remaining(out.Binding, snap, in.Scheduling.SchedulerName); fewer {
		spec.Clusters = left
	}
}

// take counts what a binding runs more of in clusters than where it ran before.
func (b *bound) take(before []workv1alpha2.TargetCluster, spec *workv1alpha2.ResourceBindingSpec) {
	had := map[string]int32{}
	for _, t := range before {
		had[t.Name] = placement.Units(spec, t)
	}
	for _, t := range spec.Clusters {
		load := placement.LoadOf(spec, placement.Units(spec, t)-had[t.Name])
		if sum := b.loads[t.Name]; sum != nil {
			load = sum.Plus(load)
		}
		if !load.IsZero() {
			b.loads[t.Name] = &load
		}
	}
}
