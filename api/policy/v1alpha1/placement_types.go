package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Placement says which clusters run a template, and how its replicas are shared
// among them.
type Placement struct {
	// ClusterAffinity picks the candidates. Nil: every cluster. Not together with
	// clusterAffinities.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// ClusterAffinities are groups of candidates, tried in order until one of
	// them can take the template. Not together with clusterAffinity.
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// ClusterTolerations are the taints of clusters that the template puts up
	// with.
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// SpreadConstraints bound over how many groups of clusters the template is
	// spread. Empty: all candidates.
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// ReplicaScheduling says how replicas are shared. Nil: each cluster runs all
	// of them (Duplicated).
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`

	// WorkloadAffinity keeps templates of one group together or apart. Nil: the
	// templates do not matter to each other.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// ReplicaSchedulingType is how replicas are shared: Duplicated when the
// placement says nothing.
func (p *Placement) ReplicaSchedulingType() ReplicaSchedulingType {
	if p == nil || p.ReplicaScheduling == nil {
		return ReplicaSchedulingTypeDuplicated
	}
	return p.ReplicaScheduling.ReplicaSchedulingType
}

// ClusterAffinityTerm is a named group of candidate clusters.
type ClusterAffinityTerm struct {
	// AffinityName names the group, in status and in messages. 1 to 32 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`

	// OverflowAffinities are further groups, tried in order, for replicas that do
	// not fit into this group.
	// +optional
	OverflowAffinities []OverflowAffinityTerm `json:"overflowAffinities,omitempty"`
}

// OverflowAffinityTerm is a named group of clusters that takes what does not
// fit elsewhere.
type OverflowAffinityTerm struct {
	// AffinityName names the group. 1 to 32 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// SpreadConstraint bounds over how many groups of clusters a template is
// spread. A group is the clusters with the same value of a field or label.
type SpreadConstraint struct {
	// SpreadByField groups clusters by a field of their spec; cluster makes each
	// its own group. Not together with spreadByLabel.
	// +optional
	// +kubebuilder:validation:Enum=cluster;region;zone;provider
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`

	// SpreadByLabel groups clusters by the value of this label key. Not together
	// with spreadByField.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// MaxGroups is the largest number of groups. 0: no limit.
	// +optional
	MaxGroups int `json:"maxGroups,omitempty"`

	// MinGroups is the smallest number of groups; with fewer the template is not
	// placed. 0 stands for 1.
	// +optional
	MinGroups int `json:"minGroups,omitempty"`
}

// SpreadFieldValue is a field of a Cluster by which clusters are grouped.
type SpreadFieldValue string

const (
	// SpreadByFieldCluster makes each cluster its own group.
	SpreadByFieldCluster SpreadFieldValue = "cluster"
	// SpreadByFieldRegion groups by spec.region.
	SpreadByFieldRegion SpreadFieldValue = "region"
	// SpreadByFieldZone groups by spec.zones.
	SpreadByFieldZone SpreadFieldValue = "zone"
	// SpreadByFieldProvider groups by spec.provider.
	SpreadByFieldProvider SpreadFieldValue = "provider"
)

// ReplicaSchedulingStrategy says how replicas are shared among clusters.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType Duplicated runs all replicas in each cluster, Divided
	// shares them out. Default Divided, once this object is given.
	// +optional
	// +kubebuilder:default="Divided"
	// +kubebuilder:validation:Enum=Duplicated;Divided
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// ReplicaDivisionPreference says how Divided shares: Aggregated uses as few
	// clusters as can hold all, Weighted shares in proportion to weights.
	// +optional
	// +kubebuilder:validation:Enum=Aggregated;Weighted
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// WeightPreference gives the weights of Weighted. Nil: all clusters weigh the
	// same.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// ReplicaSchedulingType reports whether replicas are shared or repeated.
type ReplicaSchedulingType string

const (
	// ReplicaSchedulingTypeDuplicated runs all replicas in each cluster.
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	// ReplicaSchedulingTypeDivided shares the replicas out.
	ReplicaSchedulingTypeDivided ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference says how replicas are shared out.
type ReplicaDivisionPreference string

const (
	// ReplicaDivisionPreferenceAggregated uses as few clusters as can hold all.
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	// ReplicaDivisionPreferenceWeighted shares in proportion to weights.
	ReplicaDivisionPreferenceWeighted ReplicaDivisionPreference = "Weighted"
)

// ClusterPreferences are the weights of clusters: fixed, or derived from what
// they have free.
type ClusterPreferences struct {
	// StaticWeightList gives fixed weights. A cluster that several entries pick
	// takes the highest, one that none picks takes no replicas. Ignored when
	// dynamicWeight is set.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// DynamicWeight AvailableReplicas weighs a cluster by how many more replicas
	// it can run. Empty: staticWeightList counts.
	// +optional
	// +kubebuilder:validation:Enum=AvailableReplicas
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight gives one weight to the clusters it picks.
type StaticClusterWeight struct {
	// TargetCluster picks the clusters.
	// +required
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Weight of each of them, at least 1. Only the ratio counts.
	// +required
	// +kubebuilder:validation:Minimum=1
	Weight int64 `json:"weight"`
}

// DynamicWeightFactor is what a weight is derived from.
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas derives weights from how many more replicas
// each cluster can run.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// WorkloadAffinity keeps templates of one group together or apart.
type WorkloadAffinity struct {
	// Affinity places a template where others of its group already are. Nil: no
	// attraction.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// AntiAffinity places a template where no other of its group is. Nil: no
	// repulsion.
	// +optional
	AntiAffinity *WorkloadAntiAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm says which templates attract each other.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is the label whose value is the group. Templates without
	// the label belong to none.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// WorkloadAntiAffinityTerm says which templates repel each other.
type WorkloadAntiAffinityTerm struct {
	// GroupByLabelKey is the label whose value is the group. Templates without
	// the label belong to none.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}
