package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceImport is a service that other clusters offer.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=svcim
// +kubebuilder:printcolumn:JSONPath=`.spec.type`,name="Type",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.ips`,name="IP",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type ServiceImport struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the service behaves.
	// +optional
	Spec ServiceImportSpec `json:"spec,omitempty"`

	// Status says who offers it.
	// +optional
	Status ServiceImportStatus `json:"status,omitempty"`
}

// ServiceImportList is a list of ServiceImports.
//
// +kubebuilder:object:root=true
type ServiceImportList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the imports.
	Items []ServiceImport `json:"items"`
}

// ServiceImportSpec says how an imported service behaves.
type ServiceImportSpec struct {
	// Ports of the service.
	// +required
	// +listType=atomic
	Ports []ServicePort `json:"ports"`

	// IPs under which it is reached. At most one; empty for type Headless.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	IPs []string `json:"ips,omitempty"`

	// Type: ClusterSetIP has one address for all clusters, Headless has one for
	// each endpoint.
	// +required
	// +kubebuilder:validation:Enum=ClusterSetIP;Headless
	Type ServiceImportType `json:"type"`

	// SessionAffinity ClientIP sends a client to the same endpoint each time.
	// Empty: None.
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityConfig says for how long. Nil: the default of Services.
	// +optional
	SessionAffinityConfig *corev1.SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
}

// ServiceImportType says how an imported service is addressed.
type ServiceImportType string

const (
	// ClusterSetIP has one address for all clusters.
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	// Headless has one address for each endpoint.
	Headless ServiceImportType = "Headless"
)

// ServicePort is one port of an imported service.
type ServicePort struct {
	// Name of the port. Must be set where there are several.
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol: TCP, UDP or SCTP. Empty: TCP.
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// AppProtocol is the protocol of the application, such as http. Nil: not told.
	// +optional
	AppProtocol *string `json:"appProtocol,omitempty"`

	// Port number.
	// +required
	Port int32 `json:"port"`
}

// ServiceImportStatus says who offers an imported service.
type ServiceImportStatus struct {
	// Clusters that offer it.
	// +optional
	// +patchStrategy=merge
	// +patchMergeKey=cluster
	// +listType=map
	// +listMapKey=cluster
	Clusters []ClusterStatus `json:"clusters,omitempty"`
}

// ClusterStatus is one cluster that offers an imported service.
type ClusterStatus struct {
	// Cluster is its name.
	// +required
	Cluster string `json:"cluster"`
}
