package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterCustomization teaches the control plane about one kind of
// resource, by Lua scripts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={karmada-io},shortName=ric
// +kubebuilder:printcolumn:JSONPath=`.spec.target.apiVersion`,name="TARGET-API-VERSION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.target.kind`,name="TARGET-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the kind and the scripts about it.
	// +required
	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// ResourceInterpreterCustomizationList is a list of
// ResourceInterpreterCustomizations.
//
// +kubebuilder:object:root=true
type ResourceInterpreterCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the customizations.
	Items []ResourceInterpreterCustomization `json:"items"`
}

// ResourceInterpreterCustomizationSpec is a kind and the scripts about it.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind.
	// +required
	Target CustomizationTarget `json:"target"`

	// Customizations are the scripts. What has none is asked of the next layer.
	// +required
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget names a kind.
type CustomizationTarget struct {
	// APIVersion of the kind, such as apps.kruise.io/v1alpha1.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind such as CloneSet.
	// +required
	Kind string `json:"kind"`
}

// CustomizationRules are the scripts about a kind, one per question.
type CustomizationRules struct {
	// Retention says which values of the member's object stay as they are there.
	// The script defines Retain(desiredObj, observedObj) and returns the object
	// to apply.
	// +optional
	Retention *CustomizationScript `json:"retention,omitempty"`

	// ReplicaResource says how many replicas a template has and what one needs.
	// The script defines GetReplicas(obj) and returns the number and the
	// requirements.
	// +optional
	ReplicaResource *CustomizationScript `json:"replicaResource,omitempty"`

	// ComponentResource says which parts a template with several pod templates
	// has. The script defines GetComponents(obj) and returns a list.
	// +optional
	ComponentResource *CustomizationScript `json:"componentResource,omitempty"`

	// ReplicaRevision writes a number of replicas into a manifest. The script
	// defines ReviseReplica(obj, replica) and returns the object.
	// +optional
	ReplicaRevision *CustomizationScript `json:"replicaRevision,omitempty"`

	// StatusReflection says what of the member's status is reported. The script
	// defines ReflectStatus(observedObj) and returns the status.
	// +optional
	StatusReflection *CustomizationScript `json:"statusReflection,omitempty"`

	// StatusAggregation puts the members' statuses together. The script defines
	// AggregateStatus(desiredObj, statusItems) and returns the template.
	// +optional
	StatusAggregation *CustomizationScript `json:"statusAggregation,omitempty"`

	// HealthInterpretation reports whether the member's object is healthy. The script
	// defines InterpretHealth(observedObj) and returns a boolean.
	// +optional
	HealthInterpretation *CustomizationScript `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation says what a template refers to. The script defines
	// GetDependencies(desiredObj) and returns a list of references.
	// +optional
	DependencyInterpretation *CustomizationScript `json:"dependencyInterpretation,omitempty"`
}

// CustomizationScript answers one question about a kind.
type CustomizationScript struct {
	// LuaScript is the source, in Lua 5.1, without access to files, processes or
	// the network.
	// +required
	LuaScript string `json:"luaScript"`
}
