package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Noted is the part of the failover rules that the record of a decision has, for
// programs that do not know the control plane's flags.
type Noted struct {
	// Tolerance is Rules.Tolerance, and Skew Breaker.Skew, in seconds.
	Tolerance int64 `json:"tolerance"`
	Skew      int64 `json:"skew"`
	// Grace is Rules.Grace, in seconds; 0 for the default.
	Grace int64 `json:"grace,omitempty"`
}

// Noted returns the part of r that is recorded; nil where taints move nothing.
func (r Rules) Noted() *Noted {
	if !r.Taints {
		return nil
	}
	return &Noted{Tolerance: int64(r.Tolerance / time.Second), Skew: int64(r.Breaker.skew() / time.Second), Grace: int64(r.Grace / time.Second)}
}

// Rules returns the rules as far as they were recorded; false for nil, where it
// is not known what moves templates.
func (n *Noted) Rules() (Rules, bool) {
	if n == nil {
		return Rules{}, false
	}
	return Rules{Taints: true, State: true, Tolerance: time.Duration(n.Tolerance) * time.Second, Breaker: Breaker{Skew: time.Duration(n.Skew) * time.Second}, Grace: time.Duration(n.Grace) * time.Second}, true
}

// Leaving is a cluster that a template will be moved away from.
type Leaving struct {
	Cluster string
	// At is when; nil where time alone does not bring it about.
	At *metav1.Time
	// Why is the reason, such as "untolerated taint {a:NoExecute}".
	Why string
	// Lost means that the template stays if the cluster comes back before.
	Lost bool
	// Fails means that it is unhealthy there, and stays if it is healthy before.
	Fails bool
	// Stays is why the template is not moved although it should be; empty where it
	// is.
	Stays string
}

// Leaves returns whether, and when, a placement with these tolerations will be
// moved away from c because of its taints; false where it will not. Drains are
// not considered.
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
		out.At = &metav1.Time{Time: r.notBefore(c, at, now)}
	}
	return out, true
}

// Text returns a text such as "west at 12:03:20 UTC (in 40s) unless it is back:
// untolerated taint {a:NoExecute}", or "stays in west, which it should leave
// (untolerated taint {a:NoExecute}): MassFailureSuspected stands on it".
func (l Leaving) Text(now time.Time) string {
	if l.Stays != "" {
		text := "stays in " + l.Cluster + ", which it should leave (" + l.Why + ")"
		if l.At != nil && l.At.After(now) {
			text += " at " + clockTime(l.At.Time, now)
		}
		return text + ": " + l.Stays
	}
	text := l.Cluster + " now"
	if l.At.After(now) {
		text = l.Cluster + " at " + clockTime(l.At.Time, now) + " (in " + duration.HumanDuration(l.At.Sub(now)) + ")"
	}
	switch {
	case l.Lost:
		text += " unless it is back"
	case l.Fails && l.At.After(now):
		text += " unless it is healthy by then"
	}
	return text + ": " + l.Why
}
