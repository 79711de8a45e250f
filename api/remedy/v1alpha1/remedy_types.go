package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remedy says what is to be done about clusters in certain conditions.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=remedies,categories={karmada-io}
type Remedy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is to be done, when, and where.
	// +required
	Spec RemedySpec `json:"spec"`
}

// RemedyList is a list of Remedies.
//
// +kubebuilder:object:root=true
type RemedyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the remedies.
	Items []Remedy `json:"items"`
}

// RemedySpec says what is to be done, when, and where.
type RemedySpec struct {
	// ClusterAffinity names the clusters. Nil: all.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// DecisionMatches say when: as soon as one of them holds. Empty: always.
	// +optional
	DecisionMatches []DecisionMatch `json:"decisionMatches,omitempty"`

	// Actions say what. They stand in the cluster's status.remedyActions while the
	// remedy applies.
	// +optional
	Actions []RemedyAction `json:"actions,omitempty"`
}

// ClusterAffinity names clusters.
type ClusterAffinity struct {
	// ClusterNames are the clusters. Empty: none.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// DecisionMatch says when a remedy applies.
type DecisionMatch struct {
	// ClusterConditionMatch is about a condition of the cluster.
	// +optional
	ClusterConditionMatch *ClusterConditionRequirement `json:"clusterConditionMatch,omitempty"`
}

// ClusterConditionRequirement is about a condition of a cluster.
type ClusterConditionRequirement struct {
	// ConditionType is the type of the condition.
	// +required
	ConditionType string `json:"conditionType"`

	// Operator Equal wants the condition to have the value, NotEqual another.
	// +required
	// +kubebuilder:validation:Enum=Equal;NotEqual
	Operator ClusterConditionOperator `json:"operator"`

	// ConditionStatus is the value: True, False or Unknown.
	// +required
	ConditionStatus string `json:"conditionStatus"`
}

// ClusterConditionOperator compares a condition with a value.
type ClusterConditionOperator string

const (
	// ClusterConditionEqual holds when the condition has the value.
	ClusterConditionEqual ClusterConditionOperator = "Equal"
	// ClusterConditionNotEqual holds when the condition has another value.
	ClusterConditionNotEqual ClusterConditionOperator = "NotEqual"
)

// RemedyAction is something to be done about a cluster.
type RemedyAction string

// TrafficControl takes the cluster out of the routes of MultiClusterIngresses.
const TrafficControl RemedyAction = "TrafficControl"
