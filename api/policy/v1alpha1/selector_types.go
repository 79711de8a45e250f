package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceSelector picks templates of one kind: the one called name, or those
// with matching labels, or, when it says neither, all of them.
type ResourceSelector struct {
	// APIVersion of the templates, such as apps/v1.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the templates, such as Deployment.
	// +required
	Kind string `json:"kind"`

	// Namespace of the templates. Empty: in a namespaced policy its own
	// namespace, in a cluster policy every namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the one template that is meant; labelSelector is then ignored.
	// Empty: not restricted.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector that the templates' labels must match. Nil: not restricted.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// FieldSelector picks clusters by fields of their spec.
type FieldSelector struct {
	// MatchExpressions must all hold. Keys: provider, region, zone. Operators:
	// In, NotIn.
	// +optional
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterAffinity picks clusters. All that it says must hold; an empty one
// picks every cluster.
type ClusterAffinity struct {
	// LabelSelector that the cluster's labels must match. Nil: not restricted.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// FieldSelector that the cluster's fields must match. Nil: not restricted.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`

	// ClusterNames that are allowed. Empty: all.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// ExcludeClusters are never picked, whatever else is said.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}
