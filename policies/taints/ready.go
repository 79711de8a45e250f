package taints

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// ByReadiness returns the current taints of a cluster with those that keep new templates off one
// that does not do well: not-ready while Ready is False, or was never reported (nil), and unreachable
// while it is Unknown. What is added is dated now. Taints of these keys with other effects stay.
func ByReadiness(current []corev1.Taint, ready *metav1.Condition, now metav1.Time) []corev1.Taint {
	wanted := map[string]bool{
		clusterv1alpha1.TaintClusterNotReady:    ready == nil || ready.Status == metav1.ConditionFalse,
		clusterv1alpha1.TaintClusterUnreachable: ready != nil && ready.Status == metav1.ConditionUnknown,
	}
	var out []corev1.Taint
	for _, t := range current {
		want, ours := wanted[t.Key]
		if ours && t.Effect == corev1.TaintEffectNoSchedule && !want {
			continue
		}
		if ours && t.Effect == corev1.TaintEffectNoSchedule {
			delete(wanted, t.Key)
		}
		out = append(out, t)
	}
	for _, key := range []string{clusterv1alpha1.TaintClusterNotReady, clusterv1alpha1.TaintClusterUnreachable} {
		if wanted[key] {
			out = append(out, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now})
		}
	}
	return out
}
