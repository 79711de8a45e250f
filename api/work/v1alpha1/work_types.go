package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Work is what one member is to have. It stands in the member's execution
// namespace on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=wk
// +kubebuilder:printcolumn:JSONPath=`.spec.workload.manifests[*].kind`,name="WORKLOAD-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Applied")].status`,name="APPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type Work struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the member is to have.
	// +required
	Spec WorkSpec `json:"spec"`

	// Status is what the member reported.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Works.
//
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Works.
	Items []Work `json:"items"`
}

// WorkSpec is what a member is to have.
type WorkSpec struct {
	// Workload are the manifests.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// SuspendDispatching true stops changes from reaching the member. Nil and
	// false do not.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion keeps the member's objects when the Work is
	// deleted. Nil and false remove them with it.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate are manifests.
type WorkloadTemplate struct {
	// Manifests, applied in this order.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is an object of any kind.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is what a member reported.
type WorkStatus struct {
	// Conditions of the Work: Applied and Dispatching.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses are the statuses of the manifests' objects.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`

	// Applied records what was last sent to the member and what it became there,
	// one entry per manifest. While both still match, nothing is sent.
	// +optional
	Applied []AppliedHash `json:"applied,omitempty"`
}

// ManifestStatus is the status of one manifest's object.
type ManifestStatus struct {
	// Identifier says which object.
	// +required
	Identifier ResourceIdentifier `json:"identifier"`

	// Status of the object, as much of it as its kind's interpreter reflects. Nil:
	// nothing to reflect.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health of the object.
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier names the object of a manifest.
type ResourceIdentifier struct {
	// Ordinal is the manifest's place in spec.workload.manifests, from 0.
	// +required
	Ordinal int `json:"ordinal"`

	// Group of the object. Empty: the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the object.
	// +required
	Version string `json:"version"`

	// Kind of the object.
	// +required
	Kind string `json:"kind"`

	// Resource is the kind's plural name. May be empty.
	// +required
	Resource string `json:"resource"`

	// Namespace of the object. Empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +required
	Name string `json:"name"`
}

// AppliedHash records what was sent of one manifest and what it became.
type AppliedHash struct {
	// Ordinal is the manifest's place in spec.workload.manifests, from 0.
	// +required
	Ordinal int `json:"ordinal"`

	// Desired is the hash of the manifest that was sent.
	// +required
	Desired string `json:"desired"`

	// Observed is the hash of the fields that are ours in the member's object as
	// it stood after that. What follows a dot is the seal of whoever carried it out,
	// who believes no record without its own; the control plane's loops set none.
	// +required
	Observed string `json:"observed"`

	// Replicas that the manifest asked for when they were first left to what
	// scales the object in the member. Nil: they are not left to it.
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// ResourceHealth is how well an object does in its cluster. Empty: not judged.
type ResourceHealth = workv1alpha2.ResourceHealth

const (
	// ResourceHealthy means that it does what it is there for.
	ResourceHealthy = workv1alpha2.ResourceHealthy
	// ResourceUnhealthy means that it does not.
	ResourceUnhealthy = workv1alpha2.ResourceUnhealthy
	// ResourceUnknown means that its status does not tell.
	ResourceUnknown = workv1alpha2.ResourceUnknown
)
