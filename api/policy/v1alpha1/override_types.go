package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Override is an OverridePolicy or a ClusterOverridePolicy.
//
// +kubebuilder:object:generate=false
type Override interface {
	metav1.Object
	runtime.Object
	// OverrideSpec points at the spec of the policy itself, not at a copy.
	OverrideSpec() *OverrideSpec
}

var (
	_ Override = (*OverridePolicy)(nil)
	_ Override = (*ClusterOverridePolicy)(nil)
)

// OverridePolicy says what differs per cluster in templates of its namespace.
// It is applied after all ClusterOverridePolicies, so it has the last word.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={karmada-io},shortName=op
type OverridePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what differs where.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// OverrideSpec implements Override.
func (o *OverridePolicy) OverrideSpec() *OverrideSpec { return &o.Spec }

// OverridePolicyList is a list of OverridePolicies.
//
// +kubebuilder:object:root=true
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy says what differs per cluster in templates of any
// namespace or of none.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={karmada-io},shortName=cop
type ClusterOverridePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what differs where.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// OverrideSpec implements Override.
func (o *ClusterOverridePolicy) OverrideSpec() *OverrideSpec { return &o.Spec }

// ClusterOverridePolicyList is a list of ClusterOverridePolicies.
//
// +kubebuilder:object:root=true
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterOverridePolicy `json:"items"`
}

// OverrideSpec says what differs where.
type OverrideSpec struct {
	// ResourceSelectors pick the templates. Nil: all that the policy can see.
	// +optional
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`

	// OverrideRules are applied in order to the clusters that each of them picks.
	// +optional
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`

	// TargetCluster is deprecated: use overrideRules.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders is deprecated: use overrideRules.
	// +optional
	Overriders Overriders `json:"overriders,omitempty"`
}

// RuleWithCluster says what differs in the clusters that it picks.
type RuleWithCluster struct {
	// TargetCluster picks the clusters. Nil: all of them.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders say what differs.
	// +required
	Overriders Overriders `json:"overriders"`
}

// Overriders are changes to a manifest. They are made in this order: images,
// commands, arguments, labels, annotations, fields, and plain paths last.
type Overriders struct {
	// Plaintext changes values at JSON pointers.
	// +optional
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`

	// ImageOverrider changes parts of container images.
	// +optional
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`

	// CommandOverrider changes the command of containers.
	// +optional
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`

	// ArgsOverrider changes the arguments of containers.
	// +optional
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`

	// LabelsOverrider changes the manifest's labels.
	// +optional
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`

	// AnnotationsOverrider changes the manifest's annotations.
	// +optional
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`

	// FieldOverrider changes JSON or YAML documents that stand in a string field,
	// such as a key of a ConfigMap.
	// +optional
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`
}

// OverriderOperator is what an overrider does to the value it finds.
type OverriderOperator string

const (
	// OverriderOpAdd adds a value, or sets it where there is none.
	OverriderOpAdd OverriderOperator = "add"
	// OverriderOpRemove takes a value away.
	OverriderOpRemove OverriderOperator = "remove"
	// OverriderOpReplace puts a value in the place of another.
	OverriderOpReplace OverriderOperator = "replace"
)

// PlaintextOverrider changes the value at one JSON pointer.
type PlaintextOverrider struct {
	// Path is the JSON pointer (RFC 6901) of the value.
	// +required
	Path string `json:"path"`

	// Operator is what is done, with the meaning of JSON patch (RFC 6902).
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value to add or to put in place, of any type. Must be empty for remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// ImageOverrider changes one part of container images.
type ImageOverrider struct {
	// Predicate points at the one image that is meant. Nil: all images of the pod
	// template, for kinds that have one.
	// +optional
	Predicate *ImagePredicate `json:"predicate,omitempty"`

	// Component is the part that is changed.
	// +required
	// +kubebuilder:validation:Enum=Registry;Repository;Tag
	Component ImageComponent `json:"component"`

	// Operator is what is done: add appends, replace sets, remove empties.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value to add or to set. Must be empty for remove.
	// +optional
	Value string `json:"value,omitempty"`
}

// ImagePredicate points at an image in a manifest.
type ImagePredicate struct {
	// Path is the JSON pointer (RFC 6901) of the image.
	// +required
	Path string `json:"path"`
}

// ImageComponent is a part of an image reference
// [registry[:port]/]repository[:tag|@digest].
type ImageComponent string

const (
	// Registry is the host, with its port.
	Registry ImageComponent = "Registry"
	// Repository is the path behind the host.
	Repository ImageComponent = "Repository"
	// Tag is the tag or the digest.
	Tag ImageComponent = "Tag"
)

// CommandArgsOverrider changes the command or the arguments of a container.
type CommandArgsOverrider struct {
	// ContainerName is the container that is meant.
	// +required
	ContainerName string `json:"containerName"`

	// Operator add appends the values, remove takes those out that are equal.
	// +required
	// +kubebuilder:validation:Enum=add;remove
	Operator OverriderOperator `json:"operator"`

	// Value are the words to append or to take out.
	// +optional
	Value []string `json:"value,omitempty"`
}

// LabelAnnotationOverrider changes labels or annotations.
type LabelAnnotationOverrider struct {
	// Operator add sets keys that are absent, replace sets keys that are there,
	// remove takes keys away.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value are the keys and their values. For remove the values do not matter.
	// +required
	Value map[string]string `json:"value,omitempty"`
}

// FieldOverrider changes a JSON or YAML document that stands in a string field.
// Only one of json and yaml may be given.
type FieldOverrider struct {
	// FieldPath is the JSON pointer (RFC 6901) of the string field.
	// +required
	FieldPath string `json:"fieldPath"`

	// JSON are the changes to a JSON document.
	// +optional
	JSON []JSONPatchOperation `json:"json,omitempty"`

	// YAML are the changes to a YAML document.
	// +optional
	YAML []YAMLPatchOperation `json:"yaml,omitempty"`
}

// JSONPatchOperation is one change to a JSON document.
type JSONPatchOperation struct {
	// SubPath is the JSON pointer (RFC 6901) inside of the document.
	// +required
	SubPath string `json:"subPath"`

	// Operator is what is done.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value to add or to put in place. Must be empty for remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// YAMLPatchOperation is one change to a YAML document.
type YAMLPatchOperation struct {
	// SubPath is the JSON pointer (RFC 6901) inside of the document.
	// +required
	SubPath string `json:"subPath"`

	// Operator is what is done.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value to add or to put in place. Must be empty for remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}
