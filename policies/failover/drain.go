package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// DrainTaint returns the taint by which a cluster is drained.
func DrainTaint() corev1.Taint {
	return corev1.Taint{Key: clusterv1alpha1.TaintClusterDrain, Effect: corev1.TaintEffectNoExecute}
}

// Drains reports whether the cluster is being drained.
func Drains(c *clusterv1alpha1.Cluster) bool { return drainOf(c) != nil }

// Drainable reports whether a cluster is healthy enough to move what runs there
// without haste; a lost one is a case for failover.
func Drainable(c *clusterv1alpha1.Cluster) bool { return Movable(c) && isReady(c) }

// ToleratesDrain returns from when on the drain of a cluster is not tolerated,
// and false where there is no drain, or it is tolerated for good.
func ToleratesDrain(c *clusterv1alpha1.Cluster, tolerations []corev1.Toleration, now time.Time) (time.Time, bool) {
	taint := drainOf(c)
	if taint == nil {
		return time.Time{}, false
	}
	return Rules{}.toleratedUntil(taint, tolerations, now)
}

func drainOf(c *clusterv1alpha1.Cluster) *corev1.Taint {
	drain := DrainTaint()
	for i := range c.Spec.Taints {
		if t := &c.Spec.Taints[i]; t.MatchTaint(&drain) {
			return t
		}
	}
	return nil
}

// drained returns from when on a template with these tolerations must not run in
// a cluster because of its drain, and why; the zero time where it may.
func (r Rules) drained(c *clusterv1alpha1.Cluster, tolerations []corev1.Toleration, now time.Time) (why string, at time.Time) {
	taint := drainOf(c)
	if taint == nil || !Drainable(c) {
		return "", time.Time{}
	}
	until, ends := r.toleratedUntil(taint, tolerations, now)
	if !ends {
		return "", time.Time{}
	}
	return "untolerated taint {" + taint.ToString() + "}", until
}
