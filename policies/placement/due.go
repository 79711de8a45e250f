package placement

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Why a decision is due.
const (
	DuePlacementChanged = "placement changed"
	DueReplicasChanged  = "replicas changed"
	DueRebalance        = "rebalance requested"
	DueAlways           = "follows the clusters that fit"
	DueClusterLeaving   = "a target cluster is leaving"
	DueClusterStrayed   = "a target cluster is not what the affinity asks for any more"
	DueFailed           = "the last decision failed"
	DueEvicted          = "a target cluster must not run it any more"
	DueFailBack         = "a cluster that it was moved off is well again"
	DueUndone           = "it did not become healthy where it was moved to"
)

// Mine reports whether the scheduler of that name decides about b: b names it, its
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

// Due reports whether b needs a decision, and why. A binding for which nothing is
// due is placed as it should be.
func Due(b workv1alpha2.Binding, snap Snapshot) (reason string, due bool) {
	s := stateOf(b)
	return s.due(snap)
}

// state is a binding with what its annotations say, read once.
type state struct {
	workv1alpha2.Binding
	spec *workv1alpha2.ResourceBindingSpec
	// record of the last decision; recorded reports whether there is one.
	record   Record
	recorded bool
	// placement of the spec as the applied-placement annotation would have it.
	placement string
	// back is when it returns to clusters that failed.
	back failover.Back
	// undone are clusters whose moves are taken back.
	undone []string
}

func stateOf(b workv1alpha2.Binding) state {
	s := state{Binding: b, spec: b.BindingSpec(), placement: AppliedPlacement(b.BindingSpec().Placement)}
	s.record, s.recorded = RecordOf(b)
	return s
}

func (s *state) due(snap Snapshot) (reason string, due bool) {
	switch {
	case s.placementChanged():
		return DuePlacementChanged, true
	case replicasChanged(s.spec):
		return DueReplicasChanged, true
	case s.rebalances():
		return DueRebalance, true
	case len(s.back.Stable) > 0:
		return DueFailBack, true
	case len(s.undone) > 0:
		return DueUndone, true
	case follows(s.spec):
		return DueAlways, true
	case leaving(s.spec, snap):
		return DueClusterLeaving, true
	case s.strayed(snap):
		return DueClusterStrayed, true
	case s.recorded && !s.record.Succeeded(): // what it failed for may have been taken back meanwhile
		return DueFailed, true
	default:
		return "", false
	}
}

// Answered reports whether all that b itself asks for is decided: its placement,
// its replicas and the rebalance that was asked for last. Clusters may still
// come and go.
func Answered(b workv1alpha2.Binding) bool {
	s := stateOf(b)
	return !s.placementChanged() && !replicasChanged(s.spec) && !s.rebalances()
}

// affinity returns the affinity term in force, from the record where there is
// one: status follows later.
func (s *state) affinity() string {
	if s.recorded {
		return s.record.AffinityName
	}
	return s.BindingStatus().SchedulerObservedAffinityName
}

// applied returns the placement that was applied last, as text.
func (s *state) applied() (string, bool) {
	text, ok := s.GetAnnotations()[policyv1alpha1.PolicyPlacementAnnotation]
	return text, ok
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
func (s *state) placementChanged() bool {
	text, ok := s.applied()
	if !ok {
		return true
	}
	now := s.spec.Placement
	if now == nil {
		now = &policyv1alpha1.Placement{}
	}
	if text == s.placement {
		return termChanged(s.affinity(), now.ClusterAffinities, now.ClusterAffinities)
	}
	var was policyv1alpha1.Placement
	if json.Unmarshal([]byte(text), &was) != nil {
		return false
	}
	same := equality.Semantic.DeepEqual(was.ClusterAffinity, now.ClusterAffinity) &&
		equality.Semantic.DeepEqual(was.ClusterTolerations, now.ClusterTolerations) &&
		equality.Semantic.DeepEqual(was.SpreadConstraints, now.SpreadConstraints) &&
		equality.Semantic.DeepEqual(was.ReplicaScheduling, now.ReplicaScheduling)
	return !same || termChanged(s.affinity(), was.ClusterAffinities, now.ClusterAffinities)
}

// termChanged reports whether the term in force differs between was and now;
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

// rebalances reports whether a rebalance was asked for after the last placement.
// Both times are kept in whole seconds.
func (s *state) rebalances() bool {
	at := s.spec.RescheduleTriggeredAt
	if at == nil {
		return false
	}
	var last time.Time // zero: never placed
	if t := s.BindingStatus().LastScheduledTime; t != nil {
		last = t.Time
	}
	if t := s.record.LastPlaced(); t != nil && t.After(last) {
		last = t.Time
	}
	return at.After(last)
}

// afresh reports whether a binding is placed without regard to where it runs.
func afresh(s *state) bool { return len(s.back.Stable) > 0 || len(s.undone) > 0 || s.rebalances() }

// Everywhere reports whether a binding is placed in each cluster that fits.
func Everywhere(spec *workv1alpha2.ResourceBindingSpec) bool {
	return follows(spec) && (spec.Placement == nil || len(spec.Placement.SpreadConstraints) == 0)
}

// Whole reports whether each of its clusters runs all of a workload.
func Whole(spec *workv1alpha2.ResourceBindingSpec) bool { return IsWorkload(spec) && follows(spec) }

// follows reports whether a binding is not divided among clusters.
func follows(spec *workv1alpha2.ResourceBindingSpec) bool {
	return !IsWorkload(spec) || replicas.Duplicates(strategy(spec))
}

func leaving(spec *workv1alpha2.ResourceBindingSpec, snap Snapshot) bool {
	for _, t := range spec.Clusters {
		if c, ok := snap.Cluster(t.Name); !ok || c.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// strayed reports whether the affinity in force does not mean a target any more:
// what users select clusters by, they change to move what runs there. A cluster
// that is leaving is left anyway.
func (s *state) strayed(snap Snapshot) bool {
	if s.spec.Placement == nil || len(s.spec.Clusters) == 0 {
		return false
	}
	meant := []selector.Clusters{}
	for _, a := range affinitiesInForce(s.spec.Placement, s.affinity()) {
		if m, err := selector.Compile(a); err == nil {
			meant = append(meant, m)
		}
	}
	for _, t := range s.spec.Clusters {
		c, ok := snap.Cluster(t.Name)
		if ok && c.DeletionTimestamp == nil && !slices.ContainsFunc(meant, func(m selector.Clusters) bool { return m.Matches(c) }) {
			return true
		}
	}
	return false
}

// affinitiesInForce returns what a target must match one of: the affinity, or
// the observed term with its overflow.
func affinitiesInForce(p *policyv1alpha1.Placement, observed string) []*policyv1alpha1.ClusterAffinity {
	term := findTerm(p.ClusterAffinities, observed)
	if term == nil {
		return []*policyv1alpha1.ClusterAffinity{p.ClusterAffinity}
	}
	out := []*policyv1alpha1.ClusterAffinity{&term.ClusterAffinity}
	for i := range term.OverflowAffinities {
		out = append(out, &term.OverflowAffinities[i].ClusterAffinity)
	}
	return out
}
