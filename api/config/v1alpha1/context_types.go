package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// ResourceInterpreterContext is what an interpreter webhook is sent and what it
// answers. It is never stored.
//
// +kubebuilder:object:root=true
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request is the question. Nil in an answer.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response is the answer. Nil in a question.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest is a question about an object.
type ResourceInterpreterRequest struct {
	// UID of the question, repeated in the answer.
	// +required
	UID types.UID `json:"uid"`

	// Kind of the object.
	// +required
	Kind metav1.GroupVersionKind `json:"kind"`

	// Name of the object.
	// +required
	Name string `json:"name"`

	// Namespace of the object. Empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Operation is what is asked.
	// +required
	Operation InterpreterOperation `json:"operation"`

	// Object that it is asked about.
	// +optional
	Object runtime.RawExtension `json:"object,omitempty"`

	// ObservedObject is the member's object. Only for Retain.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`

	// DesiredReplicas is the number to write into the object. Only for
	// ReviseReplica.
	// +optional
	DesiredReplicas *int32 `json:"replicas,omitempty"`

	// AggregatedStatus is what each cluster reported. Only for AggregateStatus.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is the answer to a question about an object.
type ResourceInterpreterResponse struct {
	// UID of the question.
	// +required
	UID types.UID `json:"uid"`

	// Successful is whether the question was answered.
	// +required
	Successful bool `json:"successful"`

	// Status says why it was not.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`

	// Patch is what to change in the object, for questions that ask for an object:
	// ReviseReplica, Retain, AggregateStatus.
	// +optional
	Patch []byte `json:"patch,omitempty"`

	// PatchType is the form of the patch. Nil when there is none.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`

	// ReplicaRequirements is what one replica needs. Answers InterpretReplica.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas that the object asks for. Answers InterpretReplica.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Components of the workload. Answers InterpretComponent.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitempty"`

	// Dependencies are what the object refers to. Answers InterpretDependency.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`

	// RawStatus is the status to report. Answers InterpretStatus.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy is whether the object is healthy. Answers InterpretHealth.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus says why a question was not answered.
type RequestStatus struct {
	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`

	// Code is an HTTP status code. 0: none given.
	// +optional
	Code int32 `json:"code,omitempty"`
}

// PatchType is the form of a patch.
type PatchType string

// PatchTypeJSONPatch is JSON patch (RFC 6902).
const PatchTypeJSONPatch PatchType = "JSONPatch"

// DependentObjectReference names what a template refers to: the object called
// name, or those with matching labels.
type DependentObjectReference struct {
	// APIVersion of the object.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	// +required
	Kind string `json:"kind"`

	// Namespace of the object. Empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object; labelSelector is then ignored.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector that the objects' labels must match. Nil: name counts.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
