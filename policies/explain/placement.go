package explain

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/explain/hint"
	"github.com/flotilla-io/flotilla/policies/explain/lastmove"
	"github.com/flotilla-io/flotilla/policies/explain/upcomingmoves"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/taints"
)

// place explains where the template runs and where it would.
func (x *explainer) place() {
	x.plan = x.in.planned(x.in.Policies)
	eager := x.plan
	if x.waits = x.plan.Activation.Waits; x.waits {
		eager = x.in.planned(x.in.eager(x.plan.Policy))
	}
	if eager.Err != nil && eager.Binding == nil && x.decision.Outcome == propagation.Carried && len(x.problems) == 0 {
		x.problems.add(Problem{Reason: ReasonNotBound, Message: eager.Err.Error()})
	}
	if x.binding = x.undecided(eager.Binding); x.binding == nil {
		return
	}
	for _, c := range x.binding.BindingSpec().Components {
		if x.out.Resource.Components == nil {
			x.out.Resource.Components = map[string]int32{}
		}
		x.out.Resource.Components[c.Name] = c.Replicas
	}
	p := &Placement{}
	if x.in.Binding != nil {
		p.Stands = standing(&x.in)
	}
	x.out.Placement = p
	if p.Attached = p.Stands != nil && dependency.Attached(x.binding); p.Attached {
		p.Stands.Clusters = targets(plan.Targets(x.binding.BindingSpec()))
		return
	}
	if x.in.blind(UnreadClusters) {
		x.placementProblems()
		return
	}
	missing := x.in.decideAsRecorded()
	in := placement.Situation{Clusters: x.snap, Peers: placement.PeersOf(x.binding, x.in.Bindings), Now: x.in.Now}
	if in.Estimates = placement.Recalled(x.in.Binding, x.binding, x.snap, x.in.Now); in.Estimates != nil {
		record, _ := placement.RecordOf(x.in.Binding)
		in.Unreported = record.Estimates.Why()
	}
	if p.Stands != nil {
		p.Stands.Leaves = upcomingmoves.Of(x.binding, x.in.Template, x.in.Clusters, in, x.in.Scheduling)
	}
	p.Groups = groups(x.binding.BindingSpec().WorkloadAffinityGroups, in.Peers)
	request := placement.RequestOf(x.binding, in.Peers)
	request.Estimates = in.Estimates
	trace := placement.Explain(request, x.snap, x.in.Scheduling)
	p.Terms = terms(trace, x.binding.BindingSpec().Clusters, in)
	p.Now = x.prospect(trace)
	x.due(p.Now, in)
	if len(missing) > 0 {
		p.unsure(missing)
		x.plan.Binding = x.binding // the present placement is what is delivered
	}
	x.placementProblems()
}

// planned returns what the loops would make of the template now if these were the policies.
func (in *Input) planned(policies []policyv1alpha1.Policy) plan.TemplatePlan {
	bindings := slices.Clone(in.Bindings)
	if in.Binding != nil {
		bindings = append(bindings, in.Binding)
	}
	return plan.Fleet(plan.FleetInput{
		Templates: []*unstructured.Unstructured{in.Template},
		Policies:  policies, Overrides: in.Overrides, Clusters: in.Clusters, Bindings: bindings,
		Skip: in.Skip, Priorities: in.Priorities, Quotas: in.Quotas,
		Scheduling: in.Scheduling, Interpreter: in.Interpreter, Now: in.Now,
	})[0]
}

// eager returns the policies, in which lazy is no longer Lazy.
func (in *Input) eager(lazy policyv1alpha1.Policy) []policyv1alpha1.Policy {
	out := slices.Clone(in.Policies)
	for i, p := range out {
		if propagation.RefOf(p) == propagation.RefOf(lazy) {
			p = p.DeepCopyObject().(policyv1alpha1.Policy)
			p.PropagationSpec().ActivationPreference = ""
			out[i] = p
		}
	}
	return out
}

// undecided returns the binding that the loops would decide upon: as the policy wants it, with the present
// placement and its record. Where no policy wants one, it is the present binding.
func (x *explainer) undecided(wanted workv1alpha2.Binding) workv1alpha2.Binding {
	if wanted == nil {
		return x.in.Binding
	}
	b := wanted.DeepCopyObject().(workv1alpha2.Binding)
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

// decideAsRecorded sets the plugins to those by which the binding was decided, according to its record, and returns
// the names of those that this program does not have.
func (in *Input) decideAsRecorded() (missing []string) {
	if in.Binding == nil {
		return nil
	}
	record, _ := placement.RecordOf(in.Binding)
	in.Scheduling, missing = in.Scheduling.As(record.Plugins)
	return missing
}

// unsure removes all results that the missing plugins might change. A refusal stays, as no plugin can undo it.
func (p *Placement) unsure(missing []string) {
	p.Now.Plugins, p.Now.Due = missing, ""
	p.Now.NotDue = "the control plane decides by " + notHere(missing)
	for i := range p.Terms {
		term := &p.Terms[i]
		term.Spread, term.Division = "", ""
		for j := range term.Clusters {
			v := &term.Clusters[j]
			if v.Result == Refused {
				continue
			}
			v.Result, v.Why, v.Weight, v.Replicas = Fits, "", 0, v.Assigned
			if p.Stands != nil && slices.ContainsFunc(p.Stands.Clusters, func(t Target) bool { return t.Name == v.Cluster }) {
				v.Result = Chosen
			}
		}
	}
}

// notHere returns a text with the plugins that this program does not have.
func notHere(missing []string) string {
	text := "a plugin that this program does not have: "
	if len(missing) > 1 {
		text = "plugins that this program does not have: "
	}
	return text + list(missing, maxNamed)
}

// standing returns the decision that is in force for the binding.
func standing(in *Input) *Standing {
	b, spec := in.Binding, in.Binding.BindingSpec()
	s := &Standing{Clusters: targets(plan.SpecOf(b).Clusters), Term: b.BindingStatus().SchedulerObservedAffinityName}
	if record, ok := placement.RecordOf(b); ok {
		s.Reason, s.Message, s.Term = record.Reason, record.Message, record.AffinityName
		s.Moved = lastmove.Data(lastmove.Text(record.LastMove, spec, lastmove.In(in.Works), in.Now), record.LastMove, spec, in.Template)
		s.Returns = append(failover.Returning(record.Left, spec, record.Moves, in.Now), lastmove.Back(record.Drained, in.Clusters)...)
		s.Returns = append(s.Returns, lastmove.Anew(record, b, in.Clusters, hint.Object{Kind: spec.Resource.Kind, Namespace: spec.Resource.Namespace, Name: spec.Resource.Name}.Path(), in.Now)...)
		if !record.At.IsZero() {
			s.At = record.At.DeepCopy()
		}
	}
	for i := range spec.GracefulEvictionTasks {
		task := &spec.GracefulEvictionTasks[i]
		left := Leaving{Cluster: task.FromCluster, Reason: task.Reason, Producer: task.Producer, Message: eviction.Because(task)}
		if waits := upcomingmoves.Awaits(spec, task.FromCluster, in.Clusters); waits != "" {
			left.Message = cmp.Or(left.Message, left.Reason) + "; " + waits
		}
		s.Leaving = append(s.Leaving, left)
	}
	for _, cluster := range plan.PrunedFrom(b) {
		s.Leaving = append(s.Leaving, Leaving{Cluster: cluster, Reason: "Pruned", Message: "pruned: it left its revision, and what replaces it stands there"})
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
		for _, c := range t.Components {
			if out[i].Components == nil {
				out[i].Components = map[string]int32{}
			}
			out[i].Components[c.Name] = c.Replicas
		}
	}
	return out
}

func groups(in *workv1alpha2.WorkloadAffinityGroups, peers framework.Peers) []Group {
	var out []Group
	if in == nil {
		return nil
	}
	for _, g := range []struct {
		name  string
		apart bool
		peers [][]string
	}{{in.AffinityGroup, false, peers.Affinity}, {in.AntiAffinityGroup, true, peers.AntiAffinity}} {
		if g.name == "" {
			continue
		}
		clusters := slices.Sorted(slices.Values(slices.Concat(g.peers...)))
		out = append(out, Group{Name: g.name, Apart: g.apart, Clusters: slices.Compact(clusters)})
	}
	return out
}

// prospect returns what a decision would be now.
func (x *explainer) prospect(trace placement.Trace) *Prospect {
	now := &Prospect{Clusters: targets(trace.Clusters), Term: trace.AffinityName}
	stands := targets(x.binding.BindingSpec().Clusters)
	if p := x.binding.BindingSpec().Placement; p != nil && len(trace.Terms) > 0 {
		for i := range p.ClusterAffinities {
			name := p.ClusterAffinities[i].AffinityName
			if name == trace.Terms[0].Name {
				break
			}
			now.Passed = append(now.Passed, name)
		}
	}
	if trace.Err != nil {
		now.Error = placement.Refusal(trace.Err, len(stands) > 0)
		now.Clusters = stands // the present clusters are kept while no placement is found
	}
	if x.in.Binding != nil {
		record, _ := placement.RecordOf(x.in.Binding)
		now.Same = slices.EqualFunc(now.Clusters, stands, sameTarget) && (now.Error == "" || now.Error == record.Message)
	}
	return now
}

func sameTarget(a, b Target) bool {
	return a.Name == b.Name && a.Replicas == b.Replicas && maps.Equal(a.Components, b.Components)
}

// notCarried is why nothing is decided for a template that no policy carries any more.
const notCarried = "no policy carries the template: what runs, runs on"

// quotaExceeded is why nothing is decided for a template that a quota refuses.
const quotaExceeded = "the quota of its namespace leaves no room for it"

// due sets whether the loops are about to make the decision, and why or why not.
func (x *explainer) due(now *Prospect, in placement.Situation) {
	decision, changed := placement.Decide(x.binding, in, x.in.Scheduling)
	spec := x.binding.BindingSpec()
	switch {
	case x.waits && (changed || !now.Same):
		now.NotDue = "its policy is Lazy and waits for a change of the template"
	case x.out.Placement.overQuota():
		now.NotDue = quotaExceeded
	case changed:
		now.Due = decision.Why
	case x.binding.GetDeletionTimestamp() != nil:
		now.NotDue = "the binding is being deleted"
	case spec.Suspension != nil && ptr.Deref(spec.Suspension.Scheduling, false):
		now.NotDue = "scheduling is suspended"
	case !placement.Mine(x.binding, x.in.Scheduling.SchedulerName):
		now.NotDue = notCarried
		if other := cmp.Or(spec.SchedulerName, policyv1alpha1.DefaultSchedulerName); other != cmp.Or(x.in.Scheduling.SchedulerName, policyv1alpha1.DefaultSchedulerName) {
			now.NotDue = "it is left to the scheduler " + other
		}
	case decision.Why != "":
		now.NotDue = "it was decided already"
	default:
		now.NotDue = "nothing that moves replicas has changed: neither the placement, nor their number, nor a cluster that holds some"
	}
}

// overQuota reports whether a quota refused the last decision. What the quota
// would allow now is not known here: only the control plane counts its use.
func (p *Placement) overQuota() bool {
	return p != nil && p.Stands != nil && p.Stands.Reason == workv1alpha2.BindingReasonQuotaExceeded
}

func terms(trace placement.Trace, stands []workv1alpha2.TargetCluster, in placement.Situation) []Term {
	out := make([]Term, len(trace.Terms))
	for i, t := range trace.Terms {
		out[i] = Term{Name: t.Name, Spread: t.Spread, Division: t.Division, Clusters: make([]Verdict, len(t.Verdicts))}
		if t.Err != nil {
			out[i].Error = t.Err.Error()
		}
		for j := range t.Verdicts {
			v := verdict(&t.Verdicts[j], &t, trace.Clusters)
			if answer, asked := in.Estimates[v.Cluster]; asked && v.Capacity != nil {
				v.Counted, v.CountedBy, *v.Capacity = duration.HumanDuration(answer.Age), answer.By.String(), *v.Capacity-int64(answer.Excess)
			}
			if v.Capacity != nil {
				v.Unreported = in.Unreported[v.Cluster]
			}
			if c, there := in.Clusters.Cluster(v.Cluster); there {
				v.Taints = taints.Own(c.Spec.Taints)
				v.Cordoned = slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == clusterv1alpha1.TaintClusterUnscheduler })
				v.Drained = failover.Drains(c)
			}
			out[i].Clusters[j] = v
		}
		out[i].Clusters = withLeaving(out[i].Clusters, stands, in.Clusters)
	}
	return out
}

// withLeaving adds the clusters that the template is placed in and that a decision no longer considers.
func withLeaving(verdicts []Verdict, stands []workv1alpha2.TargetCluster, snap placement.Snapshot) []Verdict {
	for _, target := range stands {
		if slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Cluster == target.Name }) {
			continue
		}
		why := "it is leaving the fleet"
		if _, there := snap.Cluster(target.Name); !there {
			why = "it is not in the fleet"
		}
		verdicts = append(verdicts, Verdict{Cluster: target.Name, Result: Refused, Why: why, Assigned: target.Replicas})
	}
	slices.SortFunc(verdicts, func(a, b Verdict) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return verdicts
}

// verdict returns the result of one cluster in a term; chosen is the final placement.
func verdict(v *placement.Verdict, t *placement.TermTrace, chosen []workv1alpha2.TargetCluster) Verdict {
	out := Verdict{
		Cluster: v.Cluster, Plugin: v.Refused, Why: v.Reason, Tier: v.Tier, Weight: v.Weight, Replicas: v.Replicas, Assigned: v.Assigned,
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
		out.Capacity = ptr.To(v.Available)
	}
	switch {
	case t.Err != nil:
		out.Result = Fits
	case slices.ContainsFunc(chosen, func(c workv1alpha2.TargetCluster) bool { return c.Name == v.Cluster }):
		out.Result = Chosen
	case !v.Selected:
		out.Result, out.Why = LeftOut, "the spread constraints leave it out"
	default:
		out.Result, out.Why = LeftOut, "the division gives it nothing"
	}
	return out
}
