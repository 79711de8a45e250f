package failover

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Rules say what moves templates off clusters. The zero value moves what runs in clusters that
// are drained, and nothing else.
type Rules struct {
	// Taints of the effect NoExecute move what does not tolerate them. Without it, the one
	// that drains a cluster does.
	Taints bool
	// Tolerance is how long it is tolerated that a cluster is not ready or cannot be
	// reached, where a placement says nothing about it.
	Tolerance time.Duration
	// Purge is how a cluster is left where the policy does not say; empty means
	// Gracefully.
	Purge policyv1alpha1.PurgeMode
	// State has what policies want preserved handed over: what cannot be read is not moved.
	State bool
	// Breaker says when the loss of many clusters moves nothing.
	Breaker Breaker
	// HeardBy is when enough has been heard of clusters to believe that one is lost:
	// what is stored of them was written by who acted before. Zero: always.
	HeardBy time.Time
}

// Fleet is what is looked at: the Clusters at one moment, in any order.
type Fleet interface {
	// Each calls f with every Cluster until f returns false.
	Each(f func(*clusterv1alpha1.Cluster) bool)
}

// Due are the clusters that a template must not run in, by name, and why.
type Due map[string]Cause

// Cause is why a template must not run in a cluster.
type Cause struct {
	// Why, in words that go on after "cluster(s) had": "untolerated taint {a:NoExecute}".
	Why string
	// Application says that it is the template that fails there, and not the cluster.
	Application bool
	// Drain says that somebody has the cluster drained, which is well.
	Drain bool
}

// Reasons returns the words for each cluster.
func (d Due) Reasons() map[string]string {
	out := make(map[string]string, len(d))
	for name, cause := range d {
		out[name] = cause.Why
	}
	return out
}

// Of returns the clusters that a placement with these tolerations must not run in now, and
// when that changes by time alone; zero where it does not.
func (r Rules) Of(fleet Fleet, tolerations []corev1.Toleration, now time.Time) (Due, time.Time) {
	var out Due
	var next time.Time
	lost := r.Breaker.lazily(fleet, now)
	fleet.Each(func(c *clusterv1alpha1.Cluster) bool {
		drain, at := r.drained(c, tolerations, now)
		switch {
		case !at.IsZero() && !at.After(now):
			if out == nil {
				out = Due{}
			}
			out[c.Name] = Cause{Why: drain, Drain: true}
			return true
		case !at.IsZero():
			next = Earlier(next, at)
		}
		if !r.Taints {
			return true
		}
		why, at := r.untolerated(c, tolerations, now)
		if at.IsZero() || !Movable(c) {
			return true
		}
		at = r.notBefore(c, at)
		switch {
		case at.After(now):
			next = Earlier(next, at)
		case isReady(c) || !lost().Suspected(c.Name):
			if out == nil {
				out = Due{}
			}
			out[c.Name] = Cause{Why: why}
		case !lost().Until.IsZero():
			next = Earlier(next, lost().Until)
		}
		return true
	})
	return out, next
}

// taintGrace is how long a cluster that is ready again has for its taints to go, which whoever put them on has to find out.
const taintGrace = 10 * time.Second

// notBefore is when something may be moved off a cluster that is due at a time: not before enough was heard of one that
// is lost, and not as soon as one is back.
func (r Rules) notBefore(c *clusterv1alpha1.Cluster, at time.Time) time.Time {
	earliest := r.HeardBy
	if ready := readiness(c); isReady(c) {
		earliest = ready.LastTransitionTime.Add(taintGrace)
	}
	return Later(at, earliest)
}

// untolerated returns from when on a cluster has a taint that moves, and which; the zero
// time where it has none.
func (r Rules) untolerated(c *clusterv1alpha1.Cluster, tolerations []corev1.Toleration, now time.Time) (why string, at time.Time) {
	for i := range c.Spec.Taints {
		taint := &c.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute || taint.Key == clusterv1alpha1.TaintClusterDrain {
			continue
		}
		until, ends := r.toleratedUntil(taint, tolerations, now)
		if taint.TimeAdded != nil && !isReady(c) {
			until = Later(until, taint.TimeAdded.Add(r.Breaker.skew()))
		}
		if ends && (at.IsZero() || until.Before(at)) {
			why, at = fmt.Sprintf("untolerated taint {%s}", taint.ToString()), until
		}
	}
	return why, at
}

// Movable reports whether what is known of a cluster says that templates may be moved off
// it: it is well, or lost. One that is there, and that we cannot act in or judge, runs on.
func Movable(c *clusterv1alpha1.Cluster) bool {
	if c.DeletionTimestamp != nil || meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld) {
		return false
	}
	return isReady(c) || Lost(c)
}

func isReady(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

// Lost reports whether a cluster does not answer, or not well, or its agent is not heard
// of. Credentials that are refused, another cluster in its place, or a state that cannot be
// read say nothing of what runs there.
func Lost(c *clusterv1alpha1.Cluster) bool {
	ready := readiness(c)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return false
	}
	switch ready.Reason {
	case clusterv1alpha1.ClusterNotReadyReason, clusterv1alpha1.ClusterNotReachableReason, clusterv1alpha1.ClusterStatusUnknownReason:
		return true
	default:
		return false
	}
}

// Away reports whether what is removed from a cluster now may go at any later time: it does not answer, or not well for
// long enough, or nothing is done there as it is not known to be ours. One that leaves the fleet is not waited for.
func Away(c *clusterv1alpha1.Cluster) bool {
	ready := readiness(c)
	return c.DeletionTimestamp == nil && ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason != clusterv1alpha1.ClusterStatusCollectionFailedReason
}

func readiness(c *clusterv1alpha1.Cluster) *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}
