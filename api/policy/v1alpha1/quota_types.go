package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedResourceQuota limits what a namespace may use in all member clusters
// together.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.status.overall`,name="OVERALL",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.overallUsed`,name="OVERALL_USED",type=string
type FederatedResourceQuota struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the limit.
	// +required
	Spec FederatedResourceQuotaSpec `json:"spec"`

	// Status is what is used of it.
	// +optional
	Status FederatedResourceQuotaStatus `json:"status,omitempty"`
}

// FederatedResourceQuotaList is a list of FederatedResourceQuotas.
//
// +kubebuilder:object:root=true
type FederatedResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the quotas.
	Items []FederatedResourceQuota `json:"items"`
}

// FederatedResourceQuotaSpec is a limit for all members together.
type FederatedResourceQuotaSpec struct {
	// Overall is the limit per resource, over all clusters.
	// +required
	Overall corev1.ResourceList `json:"overall"`

	// StaticAssignments give clusters fixed shares, each set there as a
	// ResourceQuota. Empty: no cluster is limited by itself.
	// +optional
	StaticAssignments []StaticClusterAssignment `json:"staticAssignments,omitempty"`
}

// StaticClusterAssignment is the fixed share of one cluster.
type StaticClusterAssignment struct {
	// ClusterName is the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Hard is the limit per resource in that cluster.
	// +required
	Hard corev1.ResourceList `json:"hard"`
}

// FederatedResourceQuotaStatus is what is used of a quota.
type FederatedResourceQuotaStatus struct {
	// Overall is the limit that the figures below are about.
	// +optional
	Overall corev1.ResourceList `json:"overall,omitempty"`

	// OverallUsed is what is used in all clusters together.
	// +optional
	OverallUsed corev1.ResourceList `json:"overallUsed,omitempty"`

	// AggregatedStatus has the figures of each cluster.
	// +optional
	AggregatedStatus []ClusterQuotaStatus `json:"aggregatedStatus,omitempty"`
}

// ClusterQuotaStatus is what is used in one cluster.
type ClusterQuotaStatus struct {
	// ClusterName is the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	corev1.ResourceQuotaStatus `json:",inline"`
}
