package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterService makes the Service of its name reachable from other
// clusters, or from outside.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=mcs
type MultiClusterService struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says from where the Service is reachable.
	// +required
	Spec MultiClusterServiceSpec `json:"spec"`

	// Status says how it is reached.
	// +optional
	Status corev1.ServiceStatus `json:"status,omitempty"`
}

// MultiClusterServiceList is a list of MultiClusterServices.
//
// +kubebuilder:object:root=true
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the services.
	Items []MultiClusterService `json:"items"`
}

// MultiClusterServiceSpec says from where a Service is reachable.
type MultiClusterServiceSpec struct {
	// Types: CrossCluster makes it reachable from other clusters, LoadBalancer
	// from outside.
	// +required
	Types []ExposureType `json:"types"`

	// Ports that are exposed. Empty: all of the Service.
	// +optional
	Ports []ExposurePort `json:"ports,omitempty"`

	// Range is deprecated and ignored: use providerClusters and consumerClusters.
	// +optional
	Range ExposureRange `json:"range,omitempty"`

	// ServiceProvisionClusters is deprecated: use providerClusters.
	// +optional
	ServiceProvisionClusters []string `json:"serviceProvisionClusters,omitempty"`

	// ServiceConsumptionClusters is deprecated: use consumerClusters.
	// +optional
	ServiceConsumptionClusters []string `json:"serviceConsumptionClusters,omitempty"`

	// ProviderClusters are the clusters whose endpoints serve. Empty: all.
	// +optional
	ProviderClusters []ClusterSelector `json:"providerClusters,omitempty"`

	// ConsumerClusters are the clusters from which it is reachable. Empty: all.
	// +optional
	ConsumerClusters []ClusterSelector `json:"consumerClusters,omitempty"`
}

// ExposureType says from where a Service is reachable.
type ExposureType string

const (
	// ExposureTypeCrossCluster makes it reachable from other clusters.
	ExposureTypeCrossCluster ExposureType = "CrossCluster"
	// ExposureTypeLoadBalancer makes it reachable from outside.
	ExposureTypeLoadBalancer ExposureType = "LoadBalancer"
)

// ExposurePort is one port of a Service.
type ExposurePort struct {
	// Name of the port in the Service. Empty: found by its number.
	// +optional
	Name string `json:"name,omitempty"`

	// Port number in the Service.
	// +required
	Port int32 `json:"port"`
}

// ExposureRange lists clusters.
type ExposureRange struct {
	// ClusterNames are the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// ClusterSelector names a cluster.
type ClusterSelector struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`
}
