package placement

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// Why a decision is due.
const (
	DuePlacementChanged = "placement changed"
	DueReplicasChanged  = "replicas changed"
	DueRebalance        = "rebalance requested"
	DueAlways           = "follows the clusters that fit"
	DueClusterLeaving   = "a target cluster is leaving"
)

// Mine says whether the scheduler of that name decides about b: b names it, its
// scheduling is not suspended, and a policy or another owner claims it.
func Mine(b workv1alpha2.Binding, scheduler string) bool {
	spec := b.BindingSpec()
	if orDefault(spec.SchedulerName) != orDefault(scheduler) || b.GetDeletionTimestamp() != nil {
		return false
	}
	if spec.Suspension != nil && spec.Suspension.Scheduling != nil && *spec.Suspension.Scheduling {
		return false
	}
	labels := b.GetLabels()
	return labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		labels[workv1alpha2.BindingManagedByLabel] != ""
}

func orDefault(name string) string {
	if name == "" {
		return policyv1alpha1.DefaultSchedulerName
	}
	return name
}

// Due says whether b needs a decision, and why. A binding for which nothing is
// due is placed as it should be.
func Due(b workv1alpha2.Binding, snap Snapshot) (reason string, due bool) {
	spec := b.BindingSpec()
	switch {
	case placementChanged(b):
		return DuePlacementChanged, true
	case replicasChanged(spec):
		return DueReplicasChanged, true
	case rebalances(b):
		return DueRebalance, true
	case !IsWorkload(spec) || replicas.Duplicates(strategy(spec)):
		return DueAlways, true
	case leaving(spec, snap):
		return DueClusterLeaving, true
	default:
		return "", false
	}
}

// Answered says whether the last decision answers all that b asks for itself:
// nothing is due but what follows from the clusters.
func Answered(b workv1alpha2.Binding) bool {
	return !placementChanged(b) && !replicasChanged(b.BindingSpec()) && !rebalances(b)
}

func strategy(spec *workv1alpha2.ResourceBindingSpec) *policyv1alpha1.ReplicaSchedulingStrategy {
	if spec.Placement == nil {
		return nil
	}
	return spec.Placement.ReplicaScheduling
}

// placementChanged compares the placement with the one that was applied last.
// A record that cannot be read counts as unchanged: rewriting it by moving
// workloads would be the worse fault.
func placementChanged(b workv1alpha2.Binding) bool {
	text, ok := b.GetAnnotations()[policyv1alpha1.PolicyPlacementAnnotation]
	if !ok {
		return true
	}
	var was policyv1alpha1.Placement
	if json.Unmarshal([]byte(text), &was) != nil {
		return false
	}
	now := b.BindingSpec().Placement
	if now == nil {
		now = &policyv1alpha1.Placement{}
	}
	same := equality.Semantic.DeepEqual(was.ClusterAffinity, now.ClusterAffinity) &&
		equality.Semantic.DeepEqual(was.ClusterTolerations, now.ClusterTolerations) &&
		equality.Semantic.DeepEqual(was.SpreadConstraints, now.SpreadConstraints) &&
		equality.Semantic.DeepEqual(was.ReplicaScheduling, now.ReplicaScheduling)
	return !same || termChanged(observedAffinity(b), was.ClusterAffinities, now.ClusterAffinities)
}

// termChanged says whether the term in force differs between was and now;
// changes of the others wait until they are needed.
func termChanged(observed string, was, now []policyv1alpha1.ClusterAffinityTerm) bool {
	if len(was) == 0 && len(now) == 0 {
		return false
	}
	a, b := findTerm(was, observed), findTerm(now, observed)
	return observed == "" || a == nil || b == nil || !equality.Semantic.DeepEqual(a, b)
}

func findTerm(terms []policyv1alpha1.ClusterAffinityTerm, name string) *policyv1alpha1.ClusterAffinityTerm {
	for i := range terms {
		if terms[i].AffinityName == name {
			return &terms[i]
		}
	}
	return nil
}

func replicasChanged(spec *workv1alpha2.ResourceBindingSpec) bool {
	if !IsWorkload(spec) {
		return false
	}
	if InSets(spec) {
		return len(spec.Clusters) == 0 || setChanged(spec)
	}
	if replicas.Duplicates(strategy(spec)) {
		for _, t := range spec.Clusters {
			if t.Replicas != spec.Replicas {
				return true
			}
		}
		return false
	}
	var sum int64
	for _, t := range spec.Clusters {
		sum += int64(t.Replicas)
	}
	return sum != int64(spec.Replicas)
}

// rebalances says whether a rebalance was asked for after the last placement.
// Both times are kept in whole seconds.
func rebalances(b workv1alpha2.Binding) bool {
	at := b.BindingSpec().RescheduleTriggeredAt
	return at != nil && at.After(lastPlaced(b))
}

// lastPlaced returns when b was last placed; zero if never.
func lastPlaced(b workv1alpha2.Binding) time.Time {
	var last time.Time
	if t := b.BindingStatus().LastScheduledTime; t != nil {
		last = t.Time
	}
	if r, ok := RecordOf(b); ok && r.Reason == workv1alpha2.BindingReasonSuccess && r.At.After(last) {
		last = r.At.Time
	}
	return last
}

func leaving(spec *workv1alpha2.ResourceBindingSpec, snap Snapshot) bool {
	for _, t := range spec.Clusters {
		if c, ok := snap.Cluster(t.Name); !ok || c.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}
