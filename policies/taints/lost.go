package taints

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// LostPolicy is the name of the policy that taints clusters that are lost.
const LostPolicy = "failover"

// Lost returns the policy by which what runs in lost clusters is moved, as the control plane makes it. Users edit it as
// they like.
func Lost() *policyv1alpha1.ClusterTaintPolicy {
	ready := func(operator policyv1alpha1.MatchConditionOperator) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{
			ConditionType: clusterv1alpha1.ClusterConditionReady, Operator: operator, StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue},
		}}
	}
	return &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: LostPolicy},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions:    ready(policyv1alpha1.MatchConditionOpNotIn),
			RemoveOnConditions: ready(policyv1alpha1.MatchConditionOpIn),
			Taints:             []policyv1alpha1.Taint{{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute}},
		},
	}
}
