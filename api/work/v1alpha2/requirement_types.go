package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
)

// ReplicaRequirements is what one replica needs.
type ReplicaRequirements struct {
	// NodeClaim is what its node must be like. Nil: any node.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what it asks for.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Namespace that its pods are in, for quotas.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PriorityClassName of its pods, for quotas.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// NodeClaim is what a node must be like.
type NodeClaim struct {
	// HardNodeAffinity must match the node. Nil: not restricted. Only what is
	// required at scheduling is kept, preferences are not.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`

	// NodeSelector must be among the node's labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the node's taints.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Component is one part of a workload that has several pod templates.
type Component struct {
	// Name of the part, unique in the workload. At most 32 characters.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Replicas of the part.
	// +required
	Replicas int32 `json:"replicas"`

	// ReplicaRequirements is what one replica of the part needs. Nil: nothing in
	// particular.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements is what one replica of a part needs.
type ComponentReplicaRequirements struct {
	// NodeClaim is what its node must be like. Nil: any node.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what it asks for.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// PriorityClassName of its pods, for quotas.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}
