package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceBinding is the older version of the kind that says where one
// namespaced template runs. Writing through it drops what it cannot say.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=rb
type ResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what runs where.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status says what came of it.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBindings.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ResourceBinding `json:"items"`
}

// ClusterResourceBinding is the older version of the kind that says where one
// cluster-scoped template runs. Writing through it drops what it cannot say.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={karmada-io},shortName=crb
type ClusterResourceBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what runs where.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status says what came of it.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBindings.
//
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec says what runs where.
type ResourceBindingSpec struct {
	// Resource is the template.
	// +required
	Resource ObjectReference `json:"resource"`

	// Clusters is the decision: who runs it, with how many replicas.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// ObjectReference names a template and says what it needs.
type ObjectReference struct {
	// APIVersion of the template.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the template.
	// +required
	Kind string `json:"kind"`

	// Namespace of the template. Empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the template.
	// +required
	Name string `json:"name"`

	// ResourceVersion of the template that the binding was last made from.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// ReplicaResourceRequirements is what one replica asks for.
	// +optional
	ReplicaResourceRequirements corev1.ResourceList `json:"resourcePerReplicas,omitempty"`

	// Replicas that the template asks for. 0: the kind has none, or wants none.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// TargetCluster is a cluster that runs the template.
type TargetCluster struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas that it runs. 0 for kinds without replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// ResourceBindingStatus says what came of a binding.
type ResourceBindingStatus struct {
	// Conditions of the binding.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is what each cluster reported.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is what one cluster reported.
type AggregatedStatusItem struct {
	// ClusterName is the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Status of the object there. Nil: nothing reported yet.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied is whether the desired manifest stands in the cluster.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage says why it does not.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`
}
