package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain/upcomingmoves"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// importance is the order of problems: those that keep the template from running anywhere come first.
var importance = []string{
	ReasonDeleting, ReasonPolicyNotReady, ReasonPolicyIdle, ReasonPolicyProblem, ReasonNeverPropagated, ReasonNoPolicy, ReasonWaitingForOverrides, ReasonInvalidTemplate, ReasonBindingTaken, ReasonNotBound,
	ReasonWaitingForEdit, ReasonBehind, ReasonNotPlaced, ReasonNoReplacement, ReasonSchedulingSuspended, ReasonOtherScheduler, ReasonOverrideFailed, ReasonNotInterpreted, ReasonClusterSilent, ReasonNotApplied,
	ReasonDispatchingSuspended, ReasonUnhealthy, ReasonUnknownCluster, ReasonDrifted, ReasonUnreadableRecord,
}

// problems are collected in any order, and sorted at the end.
type problems []Problem

func (ps *problems) add(p Problem) { *ps = append(*ps, p) }

// perCluster adds a problem for each text, with the clusters that it is about.
func (ps *problems) perCluster(reason string, clusters map[string][]string, next string) {
	for _, text := range slices.Sorted(maps.Keys(clusters)) {
		ps.add(Problem{Reason: reason, Message: text, Next: cmp.Or(rollup.InTheWay(text), next), Clusters: clusters[text]})
	}
}

func (ps problems) sorted() []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Compare(slices.Index(importance, a.Reason), slices.Index(importance, b.Reason))
	})
	return ps
}

// placementProblems adds the problems that keep the template from being placed as its policy wants.
func (x *explainer) placementProblems() {
	p, spec := x.out.Placement, x.binding.BindingSpec()
	switch {
	case spec.Suspension != nil && spec.Suspension.Scheduling != nil && *spec.Suspension.Scheduling:
		x.problems.add(Problem{
			Reason: ReasonSchedulingSuspended, Message: "its scheduling is suspended: its clusters stay as they are",
			Next: "set spec.suspension.scheduling to false: flotilla kubectl edit " + x.out.Resource.hint().BindingArgs(),
		})
	case spec.SchedulerName != "" && spec.SchedulerName != cmp.Or(x.in.Scheduling.SchedulerName, policyv1alpha1.DefaultSchedulerName):
		x.problems.add(Problem{
			Reason: ReasonOtherScheduler, Message: "it is left to the scheduler " + spec.SchedulerName,
			Next: "see that this scheduler runs, or take spec.schedulerName out of the policy",
		})
	case x.in.Binding != nil && rollup.Released(x.in.Binding): // has a problem of its own
	case p.Stands != nil && p.Stands.Reason == workv1alpha2.BindingReasonQuotaExceeded:
		x.problems.add(Problem{Reason: ReasonNotPlaced, Message: p.Stands.Message, Next: quotaAdvice(x.out.Resource.Namespace)})
	case p.Stands != nil && p.Stands.Reason != "" && p.Stands.Reason != workv1alpha2.BindingReasonSuccess:
		x.problems.add(Problem{Reason: ReasonNotPlaced, Message: p.Stands.Message, Next: x.advice(p)})
	case p.Now == nil:
	case x.waits && p.Now.NotDue != "" && !p.Now.Same:
		x.problems.add(Problem{
			Reason:  ReasonWaitingForEdit,
			Message: "its policy is Lazy: it takes effect when the template changes",
			Next:    "change the template, were it a label, or take spec.activationPreference out of the policy",
		})
	case p.Now.Error != "":
		x.problems.add(Problem{Reason: ReasonNotPlaced, Message: p.Now.Error, Next: x.advice(p)})
	}
	if x.behind() {
		x.problems.add(Problem{
			Reason:  ReasonBehind,
			Message: "its last change is not taken up: the binding is for the template as it was before",
			Next:    fmt.Sprintf("see what its events say: flotilla kubectl describe %s", x.out.Resource.hint().Args()),
		})
	}
	if record, _ := placement.RecordOf(x.binding); record.Stays != nil && (x.in.blind(UnreadClusters) || !upcomingmoves.Over(record.Stays, x.in.Clusters)) {
		next := upcomingmoves.Room(record.Stays)
		if p.overQuota() {
			next = quotaAdvice(x.out.Resource.Namespace)
		}
		x.problems.add(Problem{Reason: ReasonNoReplacement, Message: "it must be moved, and cannot be: " + record.Stays.Message, Next: next})
	}
	x.recordProblems()
}

// quotaAdvice returns what to do where a quota refuses a placement.
func quotaAdvice(namespace string) string {
	return "raise the quota, or ask for less: flotilla get federatedresourcequotas -n " + namespace
}

// behind reports whether the binding is for an older version of the stored
// template, unless a Lazy policy waits or a quota refuses the new one.
func (x *explainer) behind() bool {
	if x.in.Binding == nil || x.waits || x.decision.Outcome != propagation.Carried || manifest(x.in.Template) || x.out.Placement.overQuota() {
		return false
	}
	seen := x.in.Binding.GetAnnotations()[propagation.DigestAnnotation]
	digest, err := propagation.Digest(x.in.Template)
	return err == nil && seen != "" && digest != seen
}

// manifest reports whether obj is a manifest that somebody would apply, and not an object of the control plane.
func manifest(obj *unstructured.Unstructured) bool {
	at := obj.GetCreationTimestamp()
	return obj.GetUID() == "" || at.IsZero()
}

// notReady replaces the plugin TaintToleration in advices where the taint means that a cluster does not answer.
const notReady = "NotReady"

// cordoned replaces the plugin TaintToleration in advices where the taint means that the cluster is cordoned.
const cordoned = "Cordoned"

// advices are what to do where most clusters are refused by a plugin.
var advices = map[string]string{
	"APIEnablement":        "install the kind in the clusters: each must serve its API",
	"TaintToleration":      "tolerate the taint in spec.placement.clusterTolerations of the policy, or take it off the clusters",
	cordoned:               "flotilla uncordon %s takes it off; or tolerate it in spec.placement.clusterTolerations of the policy",
	notReady:               "see why it is not ready: flotilla describe cluster ",
	"ClusterAffinity":      "widen spec.placement.clusterAffinity of the policy, or label the clusters that it should mean",
	"SpreadConstraint":     "set spec.region, spec.zones and spec.provider of the clusters, or spread by something else",
	"ClusterEviction":      "wait until it has left the clusters that it is moved away from",
	"WorkloadAffinity":     "see where the other members of its group run: all of them must share a cluster that fits",
	"WorkloadAntiAffinity": "see where the other members of its group run: a cluster must be left that has none",
}

// advice returns what to do where no cluster is found: about the plugin that
// refuses most of the clusters that the policy means.
func (x *explainer) advice(p *Placement) string {
	if p.Now != nil && p.Now.Error == "" && len(p.Now.Plugins) > 0 {
		return "see what the control plane's plugin asks for; this program does not have it: " + list(p.Now.Plugins, maxNamed)
	}
	if p.Now != nil && p.Now.Error == "" && p.Now.Due != "" {
		return "wait: a new decision is due"
	}
	if x.snap.Len() == 0 && !x.in.blind(UnreadClusters) {
		return "add a cluster to the fleet: flotilla join"
	}
	refused, first := map[string]int{}, map[string]string{}
	for _, t := range p.Terms {
		for i := range t.Clusters {
			plugin := t.Clusters[i].Plugin
			if strings.Contains(t.Clusters[i].Why, clusterv1alpha1.TaintClusterNotReady) || strings.Contains(t.Clusters[i].Why, clusterv1alpha1.TaintClusterUnreachable) {
				plugin = notReady
			} else if strings.Contains(t.Clusters[i].Why, clusterv1alpha1.TaintClusterUnscheduler) {
				plugin = cordoned
			}
			refused[plugin]++
			first[plugin] = cmp.Or(first[plugin], t.Clusters[i].Cluster)
		}
	}
	if len(refused) > 1 { // clusters outside the affinity are not the obstacle
		delete(refused, plugins.ClusterAffinity{}.Name())
	}
	if refused[""] > 0 || len(refused) == 0 {
		return "see below what each cluster was found to be"
	}
	most := slices.SortedFunc(maps.Keys(refused), func(a, b string) int {
		return cmp.Or(cmp.Compare(refused[b], refused[a]), cmp.Compare(a, b))
	})
	switch strange := x.in.strangers(x.plan.Policy); {
	case most[0] == notReady:
		return advices[notReady] + first[notReady]
	case most[0] == cordoned:
		return fmt.Sprintf(advices[cordoned], first[cordoned])
	case most[0] == plugins.ClusterAffinity{}.Name() && len(strange) > 0:
		return strange[0].Next
	}
	return advices[most[0]]
}

// recordProblems adds a problem for each record on the binding that cannot be decoded.
func (x *explainer) recordProblems() {
	if x.in.Binding == nil {
		return
	}
	for _, record := range []struct {
		key  string
		into any
	}{
		{policyv1alpha1.PolicyPlacementAnnotation, &policyv1alpha1.Placement{}},
		{workv1alpha2.SchedulingDecisionAnnotation, &placement.Record{}},
	} {
		text, ok := x.in.Binding.GetAnnotations()[record.key]
		if !ok || json.Unmarshal([]byte(text), record.into) == nil {
			continue
		}
		x.problems.add(Problem{
			Reason:  ReasonUnreadableRecord,
			Message: fmt.Sprintf("the annotation %s of its binding cannot be read, so that nobody knows what was decided upon", record.key),
			Next:    fmt.Sprintf("remove it, and the decision is made again: flotilla kubectl annotate %s %s-", x.out.Resource.hint().BindingArgs(), record.key),
		})
	}
}

// deliveryProblems adds the problems that keep the template from running where it was placed.
func (x *explainer) deliveryProblems() {
	failed := map[string][]string{}
	if x.out.Overrides != nil {
		for _, c := range x.out.Overrides.Clusters {
			if c.Error != "" {
				failed[c.Error] = append(failed[c.Error], c.Cluster)
			}
		}
		x.problems.perCluster(ReasonOverrideFailed, failed, "correct the override; until then the clusters keep what they have, if anything")
	}
	silent := map[string][]string{}
	const noDispatch = "changes do not reach it: dispatching is suspended"
	var overdue []string
	faults, held, waits, suspended, unhealthy := map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, c := range x.out.Delivery.Clusters {
		switch {
		case c.Silent != "":
			text := c.Silent + ": whether it is well there is not known"
			silent[text] = append(silent[text], c.Cluster)
		case c.Suspended:
			suspended[noDispatch] = append(suspended[noDispatch], c.Cluster)
		case failed[c.Message] != nil: // has a problem already, as its override failed
		case strings.Contains(c.Message, workv1alpha1.WorkHeldPrefix):
			held[c.Message] = append(held[c.Message], c.Cluster)
		case strings.HasPrefix(c.Message, rollup.WaitsPrefix):
			waits[c.Message] = append(waits[c.Message], c.Cluster)
		case c.Message == rollup.Overdue:
			overdue = append(overdue, c.Cluster)
		case c.Applied != nil && !*c.Applied && c.Message != "":
			faults[c.Message] = append(faults[c.Message], c.Cluster)
		case (c.Outdated || c.Applied != nil && *c.Applied) && (c.Health == string(workv1alpha2.ResourceUnhealthy) || c.Health != string(workv1alpha2.ResourceHealthy) && c.Ails != ""):
			text := x.in.Symptoms[c.Cluster].String()
			unhealthy[text] = append(unhealthy[text], c.Cluster)
		}
	}
	x.problems.perCluster(ReasonNotApplied, held, "the control plane waits since it was set back: flotilla resume hub --dry-run shows what it would do")
	x.problems.perCluster(ReasonNotApplied, waits, "nothing, unless it stays so: it is made by itself once that is gone")
	x.problems.perCluster(ReasonNotApplied, faults, "put right what the cluster says; it is tried again until it works")
	if len(overdue) > 0 {
		x.problems.add(Problem{
			Reason: ReasonNotApplied, Message: rollup.Overdue, Clusters: overdue,
			Next: "the version before may run there; flotilla status says what is wrong with the cluster once that is known",
		})
	}
	x.problems.perCluster(ReasonDispatchingSuspended, suspended, "take spec.suspension out of the policy")
	x.problems.perCluster(ReasonClusterSilent, silent, "flotilla status says what is wrong with it, and what to do")
	for _, text := range slices.Sorted(maps.Keys(unhealthy)) {
		clusters := unhealthy[text]
		next := x.out.Resource.hint().Command(x.in.Symptoms[clusters[0]], clusters)
		x.problems.add(Problem{Reason: ReasonUnhealthy, Message: text, Next: next, Clusters: clusters})
	}
}
