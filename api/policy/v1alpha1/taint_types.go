package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTaintPolicy taints clusters as their conditions say, and takes the
// taints off again.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type ClusterTaintPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which conditions bring which taints.
	// +required
	Spec ClusterTaintPolicySpec `json:"spec"`
}

// ClusterTaintPolicyList is a list of ClusterTaintPolicies.
//
// +kubebuilder:object:root=true
type ClusterTaintPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterTaintPolicy `json:"items"`
}

// ClusterTaintPolicySpec says which conditions bring which taints.
type ClusterTaintPolicySpec struct {
	// TargetClusters picks the clusters. Nil: all of them.
	// +optional
	TargetClusters *ClusterAffinity `json:"targetClusters,omitempty"`

	// AddOnConditions put the taints on when all of them hold. Empty: never.
	// +optional
	AddOnConditions []MatchCondition `json:"addOnConditions,omitempty"`

	// RemoveOnConditions take the taints off when all of them hold. Empty: never.
	// +optional
	RemoveOnConditions []MatchCondition `json:"removeOnConditions,omitempty"`

	// Taints are what is put on and taken off.
	// +required
	// +kubebuilder:validation:MinItems=1
	Taints []Taint `json:"taints"`
}

// MatchCondition holds when a condition of a cluster has one of some values.
type MatchCondition struct {
	// ConditionType is the type of the cluster's condition.
	// +required
	ConditionType string `json:"conditionType"`

	// Operator In wants the value to be listed, NotIn wants it not to be.
	// +required
	Operator MatchConditionOperator `json:"operator"`

	// StatusValues are the values: True, False, Unknown.
	// +required
	StatusValues []metav1.ConditionStatus `json:"statusValues"`
}

// MatchConditionOperator compares a value with a list.
type MatchConditionOperator string

const (
	// MatchConditionOpIn holds when the value is listed.
	MatchConditionOpIn MatchConditionOperator = "In"
	// MatchConditionOpNotIn holds when the value is not listed.
	MatchConditionOpNotIn MatchConditionOperator = "NotIn"
)

// Taint is a taint without the time it was put on.
type Taint struct {
	// Key of the taint.
	// +required
	Key string `json:"key"`

	// Effect of the taint on workloads that do not tolerate it.
	// +required
	Effect corev1.TaintEffect `json:"effect"`

	// Value of the taint.
	// +optional
	Value string `json:"value,omitempty"`
}
