package quota

import (
	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Shares are the amounts that single clusters may use by a quota, by cluster. Of several for
// one cluster the last one holds.
func Shares(q *policyv1alpha1.FederatedResourceQuota) map[string]corev1.ResourceList {
	out := make(map[string]corev1.ResourceList, len(q.Spec.StaticAssignments))
	for i := range q.Spec.StaticAssignments {
		out[q.Spec.StaticAssignments[i].ClusterName] = q.Spec.StaticAssignments[i].Hard
	}
	return out
}
