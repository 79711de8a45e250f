package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterIngress routes requests to Services in several clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=mci
type MultiClusterIngress struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec are the routes, as in an Ingress.
	// +optional
	Spec networkingv1.IngressSpec `json:"spec,omitempty"`

	// Status says how it is reached.
	// +optional
	Status MultiClusterIngressStatus `json:"status,omitempty"`
}

// MultiClusterIngressList is a list of MultiClusterIngresses.
//
// +kubebuilder:object:root=true
type MultiClusterIngressList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ingresses.
	Items []MultiClusterIngress `json:"items"`
}

// MultiClusterIngressStatus says how an ingress is reached.
type MultiClusterIngressStatus struct {
	networkingv1.IngressStatus `json:",inline"`

	// TrafficBlockClusters are the clusters that get no requests.
	// +optional
	TrafficBlockClusters []string `json:"trafficBlockClusters,omitempty"`

	// ServiceLocations says where each backend Service runs.
	// +optional
	ServiceLocations []ServiceLocation `json:"serviceLocations,omitempty"`
}

// ServiceLocation says where a backend Service runs.
type ServiceLocation struct {
	// Name of the Service.
	// +required
	Name string `json:"name"`

	// Clusters where it runs.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
}
