package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadRebalancer asks for workloads to be placed from scratch, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
type WorkloadRebalancer struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which workloads.
	// +required
	Spec WorkloadRebalancerSpec `json:"spec"`

	// Status says what came of it.
	// +optional
	Status WorkloadRebalancerStatus `json:"status,omitempty"`
}

// WorkloadRebalancerList is a list of WorkloadRebalancers.
//
// +kubebuilder:object:root=true
type WorkloadRebalancerList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the rebalancers.
	Items []WorkloadRebalancer `json:"items"`
}

// WorkloadRebalancerSpec says which workloads are placed from scratch.
type WorkloadRebalancerSpec struct {
	// Workloads are the templates.
	// +required
	// +kubebuilder:validation:MinItems=1
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is how long the object stays once all is done.
	// Seconds; nil: for ever, 0: not at all.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference names a template.
type ObjectReference struct {
	// APIVersion of the template.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the template.
	// +required
	Kind string `json:"kind"`

	// Name of the template.
	// +required
	Name string `json:"name"`

	// Namespace of the template. Empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus says what came of a rebalancer.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads is what came of each workload.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the metadata.generation that was handled. 0: none yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is when all workloads were handled. Nil: not yet.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
}

// ObservedWorkload is what came of one workload.
type ObservedWorkload struct {
	// Workload is the template.
	// +required
	Workload ObjectReference `json:"workload"`

	// Result reports whether a new placement was asked for. Empty: not yet.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`

	// Reason says why it was not.
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}

// RebalanceResult reports whether a new placement was asked for.
type RebalanceResult string

const (
	// RebalanceFailed means that it was not.
	RebalanceFailed RebalanceResult = "Failed"
	// RebalanceSuccessful means that it was.
	RebalanceSuccessful RebalanceResult = "Successful"
)

// RebalanceFailedReason says why no new placement was asked for.
type RebalanceFailedReason string

// RebalanceObjectNotFound means that the template has no binding.
const RebalanceObjectNotFound RebalanceFailedReason = "ReferencedBindingNotFound"
