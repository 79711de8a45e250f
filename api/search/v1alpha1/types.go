package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// ResourceRegistry says which resources of which members are cached on the hub.
//
// +kubebuilder:object:root=true
type ResourceRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is cached.
	// +optional
	Spec ResourceRegistrySpec `json:"spec,omitempty"`

	// Status says how caching goes.
	// +optional
	Status ResourceRegistryStatus `json:"status,omitempty"`
}

// ResourceRegistrySpec says which resources of which members are cached.
type ResourceRegistrySpec struct {
	// TargetCluster picks the members.
	// +required
	TargetCluster policyv1alpha1.ClusterAffinity `json:"targetCluster"`

	// ResourceSelectors pick the resources.
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// BackendStore is where else the resources are written to. Nil: they are only
	// kept in memory.
	// +optional
	BackendStore *BackendStoreConfig `json:"backendStore,omitempty"`
}

// ResourceSelector picks the resources of one kind.
type ResourceSelector struct {
	// APIVersion of the resources, such as apps/v1.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the resources.
	// +required
	Kind string `json:"kind"`

	// Namespace of the resources. Empty: all.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// BackendStoreConfig says where cached resources are written to.
type BackendStoreConfig struct {
	// OpenSearch is a search engine. Nil: none.
	// +optional
	OpenSearch *OpenSearchConfig `json:"openSearch,omitempty"`
}

// OpenSearchConfig says how a search engine is reached.
type OpenSearchConfig struct {
	// Addresses are URLs of its nodes. Schemes: http, https.
	// +required
	Addresses []string `json:"addresses"`

	// SecretRef names the Secret with the credentials: its keys are userName and
	// password.
	// +required
	SecretRef clusterv1alpha1.LocalSecretReference `json:"secretRef,omitempty"`
}

// ResourceRegistryStatus says how caching goes.
type ResourceRegistryStatus struct {
	// Conditions of the registry.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourceRegistryList is a list of ResourceRegistries.
//
// +kubebuilder:object:root=true
type ResourceRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the registries.
	Items []ResourceRegistry `json:"items"`
}

// Search is the virtual kind under whose name cache the cached resources are
// asked for. It is never stored.
//
// +kubebuilder:object:root=true
// +k8s:openapi-gen=false
type Search struct {
	metav1.TypeMeta `json:",inline"`
}

// Proxying is the virtual kind through whose sub-resource proxy requests go to
// members. It is never stored.
//
// +kubebuilder:object:root=true
// +k8s:openapi-gen=false
type Proxying struct {
	metav1.TypeMeta `json:",inline"`
}
