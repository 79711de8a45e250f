package taints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Own are the taints of a cluster that its operators gave it, as "key=value:Effect":
// neither what says how it does nor that it is cordoned or drained.
func Own(taints []corev1.Taint) []string {
	var out []string
	for i := range taints {
		t := &taints[i]
		if slices.Contains([]string{clusterv1alpha1.TaintClusterNotReady, clusterv1alpha1.TaintClusterUnreachable, clusterv1alpha1.TaintClusterUnscheduler, clusterv1alpha1.TaintClusterDrain}, t.Key) {
			continue
		}
		out = append(out, t.ToString())
	}
	return out
}
