package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Noted is what a decision notes of the rules that it was made by, for those who do not know them.
type Noted struct {
	// Tolerance of a loss, and Skew of a Breaker, in seconds.
	Tolerance int64 `json:"tolerance"`
	Skew      int64 `json:"skew"`
}

// Noted returns what is to be noted of r; nil where taints move nothing.
func (r Rules) Noted() *Noted {
	if !r.Taints {
		return nil
	}
	return &Noted{Tolerance: int64(r.Tolerance / time.Second), Skew: int64(r.Breaker.skew() / time.Second)}
}

// Rules returns what was noted, and false for nil: then it is not known what moves.
func (n *Noted) Rules() (Rules, bool) {
	if n == nil {
		return Rules{}, false
	}
	return Rules{Taints: true, State: true, Tolerance: time.Duration(n.Tolerance) * time.Second, Breaker: Breaker{Skew: time.Duration(n.Skew) * time.Second}}, true
}

// Leaving is that a template is to be moved off a cluster.
type Leaving struct {
	Cluster string
	// At is when; nil where time alone does not bring it about.
	At *metav1.Time
	// Why it is, in words: "untolerated taint {a:NoExecute}".
	Why string
	// Lost says that it is not moved if the cluster is back before.
	Lost bool
	// Stays is why it is not moved nevertheless; empty where it is.
	Stays string
}

// Leaves returns which of the clusters a placement with these tolerations is to be moved off for their taints, and when, by name;
// false where that is not so. Drains are not among them.
func (r Rules) Leaves(c *clusterv1alpha1.Cluster, tolerations []corev1.Toleration, now time.Time) (Leaving, bool) {
	why, at := r.untolerated(c, tolerations, now)
	if !r.Taints || at.IsZero() {
		return Leaving{}, false
	}
	out := Leaving{Cluster: c.Name, Why: why, Lost: !isReady(c)}
	switch {
	case out.Lost && Suspected(c):
		out.Stays = clusterv1alpha1.ClusterConditionMassFailureSuspected + " stands on it: flotilla describe cluster " + c.Name
	case !Movable(c):
		out.Stays = "it is not known to be lost"
		if ready := readiness(c); ready != nil {
			out.Stays += ": " + ready.Reason
		}
	default:
		out.At = &metav1.Time{Time: r.notBefore(c, at)}
	}
	return out, true
}

// Text returns "west at 12:03:20 UTC (in 40s) unless it is back: untolerated taint {a:NoExecute}", or "not west (untolerated taint
// {a:NoExecute}), as MassFailureSuspected stands on it".
func (l Leaving) Text(now time.Time) string {
	if l.Stays != "" {
		text := "not " + l.Cluster + " (" + l.Why + ")"
		if l.At != nil && l.At.After(now) {
			text += " at " + clockTime(l.At.Time, now)
		}
		return text + ", as " + l.Stays
	}
	text := l.Cluster + " now"
	if l.At.After(now) {
		text = l.Cluster + " at " + clockTime(l.At.Time, now) + " (in " + duration.HumanDuration(l.At.Sub(now)) + ")"
	}
	if l.Lost {
		text += " unless it is back"
	}
	return text + ": " + l.Why
}
