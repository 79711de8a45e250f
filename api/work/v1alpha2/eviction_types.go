package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// GracefulEvictionTask is one cluster that a template is leaving.
type GracefulEvictionTask struct {
	// FromCluster is the cluster.
	// +required
	FromCluster string `json:"fromCluster"`

	// PurgeMode says what becomes of the old copy. Empty: Gracefully.
	// +optional
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// Replicas that ran there. Nil: the kind has none.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Reason in one CamelCase word, for programs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason"`

	// Message for people. At most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// Producer is who asked for the eviction.
	// +required
	Producer string `json:"producer"`

	// GracePeriodSeconds is how long the old copy may stay while the new ones are
	// not healthy yet. Seconds; nil: the server's default.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// SuppressDeletion true keeps the old copy until a person decides. Nil: the
	// grace period counts.
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// PreservedLabelState are labels for the new copy, taken from the old copy's
	// status.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// CreationTimestamp is when the task was made. Set by the server.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ClustersBeforeFailover is where the template ran before: only clusters that
	// are not in it are new.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}
