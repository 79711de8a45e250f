package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceExport offers the Service of its name and namespace to other clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=svcex
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type ServiceExport struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status reports whether the Service is offered.
	// +optional
	Status ServiceExportStatus `json:"status,omitempty"`
}

// ServiceExportList is a list of ServiceExports.
//
// +kubebuilder:object:root=true
type ServiceExportList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the exports.
	Items []ServiceExport `json:"items"`
}

// ServiceExportStatus reports whether a Service is offered.
type ServiceExportStatus struct {
	// Conditions of the export: Valid and Conflict.
	// +optional
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of a ServiceExport.
const (
	// ServiceExportValid is True when the Service is there and can be offered.
	ServiceExportValid = "Valid"
	// ServiceExportConflict is True when clusters offer it in different ways.
	ServiceExportConflict = "Conflict"
)
