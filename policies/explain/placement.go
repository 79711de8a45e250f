package explain

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// place says where the template runs and where it would.
func (x *explainer) place() {
	x.plan = x.planned()
	x.binding = x.undecided()
	if x.binding == nil {
		return
	}
	p := &Placement{}
	if x.in.Binding != nil {
		p.Stands = standing(x.in.Binding)
	}
	peers := placement.PeersOf(x.binding, x.in.Bindings)
	trace := placement.Explain(placement.RequestOf(x.binding, peers), x.snap, x.in.Scheduling)
	p.Terms = terms(trace)
	p.Now = x.prospect(trace)
	x.due(&p.Now, placement.Situation{Clusters: x.snap, Peers: peers, Now: x.in.Now})
	x.out.Placement = p
	x.placementProblems()
}

// planned returns what the loops would make of the template now.
func (x *explainer) planned() plan.TemplatePlan {
	bindings := slices.Clone(x.in.Bindings)
	if x.in.Binding != nil {
		bindings = append(bindings, x.in.Binding)
	}
	in := plan.FleetInput{
		Policies: x.in.Policies, Overrides: x.in.Overrides, Clusters: x.in.Clusters, Bindings: bindings,
		Skip: x.in.Skip, NoPreemption: x.in.NoPreemption, Scheduling: x.in.Scheduling, Interpreter: x.in.Interpreter, Now: x.in.Now,
	}
	in.Templates = append(in.Templates, x.in.Template)
	return plan.Fleet(in)[0]
}

// undecided returns the binding as the policy wants it, with the placement that
// stands: what the loops decide upon. Where no policy says anything it is the
// one that there is.
func (x *explainer) undecided() workv1alpha2.Binding {
	if x.plan.Binding == nil {
		return x.in.Binding
	}
	b := x.plan.Binding.DeepCopyObject().(workv1alpha2.Binding)
	var clusters []workv1alpha2.TargetCluster
	var stored map[string]string
	if x.in.Binding != nil {
		clusters, stored = x.in.Binding.BindingSpec().Clusters, x.in.Binding.GetAnnotations()
	}
	b.BindingSpec().Clusters = clusters
	annotations := maps.Clone(b.GetAnnotations())
	for _, key := range []string{policyv1alpha1.PolicyPlacementAnnotation, workv1alpha2.SchedulingDecisionAnnotation} {
		delete(annotations, key)
		if text, ok := stored[key]; ok {
			annotations[key] = text
		}
	}
	b.SetAnnotations(annotations)
	return b
}

// standing says what was decided about b.
func standing(b workv1alpha2.Binding) *Standing {
	spec := b.BindingSpec()
	s := &Standing{Clusters: targets(spec.Clusters), Term: b.BindingStatus().SchedulerObservedAffinityName}
	if record, ok := placement.RecordOf(b); ok {
		s.Reason, s.Message, s.Term = record.Reason, record.Message, record.AffinityName
		if !record.At.IsZero() {
			s.At = record.At.DeepCopy()
		}
	}
	for i := range spec.GracefulEvictionTasks {
		s.Leaving = append(s.Leaving, spec.GracefulEvictionTasks[i].FromCluster)
	}
	for _, by := range spec.RequiredBy {
		s.RequiredBy = append(s.RequiredBy, by.Name)
	}
	return s
}

func targets(clusters []workv1alpha2.TargetCluster) []Target {
	out := make([]Target, len(clusters))
	for i, t := range clusters {
		out[i] = Target{Name: t.Name, Replicas: t.Replicas}
	}
	return out
}

// prospect says what the decision would be.
func (x *explainer) prospect(trace placement.Trace) Prospect {
	now := Prospect{Clusters: targets(trace.Clusters), Term: trace.AffinityName}
	stands := targets(x.binding.BindingSpec().Clusters)
	if trace.Err != nil {
		now.Error = trace.Err.Error()
		var fit *placement.FitError
		if !errors.As(trace.Err, &fit) {
			now.Clusters = stands // kept until there is a better answer
		}
	}
	now.Same = x.in.Binding != nil && slices.Equal(now.Clusters, stands)
	return now
}

// due says whether the decision is about to be made, and why not.
func (x *explainer) due(now *Prospect, in placement.Situation) {
	decision, changed := placement.Decide(x.binding, in, x.in.Scheduling)
	spec := x.binding.BindingSpec()
	switch {
	case changed:
		now.Due = decision.Why
	case x.binding.GetDeletionTimestamp() != nil:
		now.NotDue = "the binding is being deleted"
	case spec.Suspension != nil && ptr.Deref(spec.Suspension.Scheduling, false):
		now.NotDue = "scheduling is suspended"
	case !placement.Mine(x.binding, x.in.Scheduling.SchedulerName):
		now.NotDue = "no policy carries the template: what runs, runs on"
		if other := spec.SchedulerName; other != orDefault(x.in.Scheduling.SchedulerName) {
			now.NotDue = "it is left to the scheduler " + other
		}
	case decision.Why != "":
		now.NotDue = "it was decided already"
	default:
		now.NotDue = "nothing that moves replicas has changed: neither the placement, nor their number, nor a cluster that holds some"
	}
}

func orDefault(scheduler string) string {
	if scheduler == "" {
		return policyv1alpha1.DefaultSchedulerName
	}
	return scheduler
}

func terms(trace placement.Trace) []Term {
	out := make([]Term, len(trace.Terms))
	for i, t := range trace.Terms {
		out[i] = Term{Name: t.Name, Spread: t.Spread, Division: t.Division, Clusters: make([]Verdict, len(t.Verdicts))}
		if t.Err != nil {
			out[i].Error = t.Err.Error()
		}
		for j := range t.Verdicts {
			out[i].Clusters[j] = verdict(&t.Verdicts[j], &t, trace.Clusters)
		}
	}
	return out
}

// verdict of one cluster in a term; chosen is what came of it in the end.
func verdict(v *placement.Verdict, t *placement.TermTrace, chosen []workv1alpha2.TargetCluster) Verdict {
	out := Verdict{
		Cluster: v.Cluster, Plugin: v.Refused, Why: v.Reason, Tier: v.Tier, Weight: v.Weight, Replicas: v.Replicas, Held: v.Held,
	}
	if v.Refused != "" {
		out.Result = Refused
		return out
	}
	for plugin, score := range v.Scores {
		if score == 0 {
			continue
		}
		if out.Scores == nil {
			out.Scores = map[string]int64{}
		}
		out.Scores[plugin] = score
		out.Score += score
	}
	if v.Available >= 0 {
		out.Room = ptr.To(v.Available)
	}
	switch {
	case t.Err != nil:
		out.Result = Fits
	case slices.ContainsFunc(chosen, func(c workv1alpha2.TargetCluster) bool { return c.Name == v.Cluster }):
		out.Result = Chosen
	case !v.Selected:
		out.Result, out.Why = LeftOut, "the spread constraints leave it out"
	case v.Weight == 0 && t.Division != "":
		out.Result, out.Why = LeftOut, "it has no weight in the division"
	default:
		out.Result, out.Why = LeftOut, "its share comes to nothing"
	}
	return out
}
