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

// Rules are what moves templates away from clusters. The zero value moves what
// runs in clusters that are drained, and nothing else.
type Rules struct {
	// Taints enables moves because of taints with the effect NoExecute that are
	// not tolerated. Without it, only the taint of a drain moves.
	Taints bool
	// Tolerance is how long it is tolerated that a cluster is not ready or cannot
	// be reached, where the placement has no toleration for it.
	Tolerance time.Duration
	// Purge is the purge mode for policies that have none; empty means Gracefully.
	Purge policyv1alpha1.PurgeMode
	// State enables state preservation: what the policy wants preserved is handed
	// over, and a template whose state cannot be read is not moved.
	State bool
	// Grace is how long a move may take until it is taken back; zero means
	// eviction.DefaultGrace.
	Grace time.Duration
	// Breaker decides when the loss of many clusters moves nothing.
	Breaker Breaker
	// HeardBy is from when on clusters count as lost. Their stored conditions are
	// those of the leader before, so a new leader waits until it has heard of them
	// itself. Zero means always.
	HeardBy time.Time
}

// Fleet is the Clusters at one moment, in any order.
type Fleet interface {
	// Each calls f with every Cluster until f returns false.
	Each(f func(*clusterv1alpha1.Cluster) bool)
}

// Due are the clusters that a template must not run in, by name, and why.
type Due map[string]Cause

// Cause is why a template must not run in a cluster.
type Cause struct {
	// Why is the reason, as it follows "cluster(s) had": "untolerated taint
	// {a:NoExecute}".
	Why string
	// Application means that the template fails there, and not the cluster.
	Application bool
	// Anew means that it was well for long before that: earlier moves no longer count.
	Anew bool
	// Drain means that the cluster is healthy and is being drained.
	Drain bool
}

// Reasons returns Why by cluster.
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
		// A cluster that is drained is healthy, so the breaker, which is about lost
		// clusters, does not apply.
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
		at = r.notBefore(c, at, now)
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

// taintGrace is how long nothing is moved away from a cluster that has become
// ready again: whoever set its taints needs that time to notice, and to remove
// them.
const taintGrace = 10 * time.Second

// notBefore returns the time at which something may be moved away from a cluster,
// where it is due at a time: not before enough was heard of a lost cluster, and
// not right after one has come back. One that has come back in the future has not
// done so right now: the clock was set back since.
func (r Rules) notBefore(c *clusterv1alpha1.Cluster, at, now time.Time) time.Time {
	earliest := r.HeardBy
	if isReady(c) {
		earliest = time.Time{}
		if since := readiness(c).LastTransitionTime.Time; !since.After(now) {
			earliest = since.Add(taintGrace)
		}
	}
	return Later(at, earliest)
}

// untolerated returns from when on a cluster has a taint that moves a template
// with these tolerations, and which; the zero time where it has none.
func (r Rules) untolerated(c *clusterv1alpha1.Cluster, tolerations []corev1.Toleration, now time.Time) (why string, at time.Time) {
	for i := range c.Spec.Taints {
		taint := &c.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute || taint.Key == clusterv1alpha1.TaintClusterDrain {
			continue
		}
		until, ends := r.toleratedUntil(taint, tolerations, now)
		if taint.TimeAdded != nil && !isReady(c) {
			until = Later(until, since(taint, now).Add(r.Breaker.skew()))
		}
		if ends && (at.IsZero() || until.Before(at)) {
			why, at = fmt.Sprintf("untolerated taint {%s}", taint.ToString()), until
		}
	}
	return why, at
}

// Movable reports whether templates may be moved away from a cluster, by what is
// known of it: it is ready, or lost. In a cluster that exists but in which the
// control plane may not act, or whose state it cannot judge, everything runs on.
func Movable(c *clusterv1alpha1.Cluster) bool {
	if c.DeletionTimestamp != nil || meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld) {
		return false
	}
	return isReady(c) || Lost(c)
}

func isReady(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

// Lost reports whether a cluster does not answer, or is not healthy, or its agent
// is not heard of. Refused credentials, another cluster in its place, or a status
// that cannot be read say nothing about what runs there.
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

// Away reports whether a removal from a cluster may have to wait: the cluster
// does not answer, has not been healthy for long enough, or is not known to be
// ours. A cluster that is leaving the fleet is not waited for.
func Away(c *clusterv1alpha1.Cluster) bool {
	ready := readiness(c)
	return c.DeletionTimestamp == nil && ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason != clusterv1alpha1.ClusterStatusCollectionFailedReason
}

func readiness(c *clusterv1alpha1.Cluster) *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}
