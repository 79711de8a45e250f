package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Binding is a ResourceBinding or a ClusterResourceBinding.
//
// +kubebuilder:object:generate=false
type Binding interface {
	metav1.Object
	runtime.Object
	// BindingSpec points at the spec of the binding itself, not at a copy.
	BindingSpec() *ResourceBindingSpec
	// BindingStatus points at the status of the binding itself, not at a copy.
	BindingStatus() *ResourceBindingStatus
}

var (
	_ Binding = (*ResourceBinding)(nil)
	_ Binding = (*ClusterResourceBinding)(nil)
)

// ResourceBinding says where one namespaced template runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories={karmada-io},shortName=rb
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="SCHEDULED",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FULLYAPPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
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

// BindingSpec implements Binding.
func (b *ResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus implements Binding.
func (b *ResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

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

// ClusterResourceBinding says where one cluster-scoped template runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,categories={karmada-io},shortName=crb
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="SCHEDULED",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FULLYAPPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
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

// BindingSpec implements Binding.
func (b *ClusterResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus implements Binding.
func (b *ClusterResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

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

	// PropagateDeps takes along what the template refers to. From the policy.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// ReplicaRequirements is what one replica needs. Nil: nothing in particular.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas that the template asks for. 0: the kind has none, or wants none.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the parts of a workload with several pod templates, each with
	// its own replicas. Empty: replicas counts.
	// +optional
	Components []Component `json:"components,omitempty"`

	// Clusters is the decision: who runs it, with how many replicas.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// Placement is a copy of the policy's. Nil: the binding follows requiredBy
	// alone.
	// +optional
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`

	// GracefulEvictionTasks are the clusters that the template is leaving. Those
	// who evict add a task and take the cluster out of clusters in one write.
	// +optional
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`

	// RequiredBy are the bindings whose templates refer to this one, and where
	// they run: it runs there too.
	// +optional
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// SchedulerName is who decides clusters. From the policy.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover says how the template moves off a cluster. From the policy.
	// +optional
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution says what happens to a member's object that is in the
	// way. From the policy. Default Abort.
	// +optional
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`

	// Drift says what happens to changes of others in members. From the policy.
	// Empty: Revert.
	// +optional
	// +kubebuilder:validation:Enum=Revert;Report
	Drift policyv1alpha1.DriftBehavior `json:"drift,omitempty"`

	// RescheduleTriggeredAt asks for a placement from scratch when it is later
	// than status.lastScheduledTime. Nil: nobody asked.
	// +optional
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`

	// Suspension stops scheduling, or changes from reaching clusters. Nil: stops
	// nothing.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the members' objects when the template is
	// deleted. Nil and false remove them with it. From the policy.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority orders bindings that wait to be placed. Nil: 0.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`

	// WorkloadAffinityGroups are the groups that the template is in. Nil: none.
	// +optional
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`
}

// ObjectReference names a template.
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

	// UID of the template.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// ResourceVersion of the template that the binding was last made from.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// TargetCluster is a cluster that runs the template.
type TargetCluster struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas that it runs. 0 for kinds without replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the replicas of each part. Empty: replicas counts.
	// +optional
	Components []TargetComponent `json:"components,omitempty"`
}

// TargetComponent is how many replicas of one part a cluster runs.
type TargetComponent struct {
	// Name of the component, as in spec.components.
	// +required
	Name string `json:"name"`

	// Replicas that the cluster runs.
	// +required
	Replicas int32 `json:"replicas"`
}

// BindingSnapshot is another binding, and where its template runs.
type BindingSnapshot struct {
	// Namespace of the binding. Empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the binding.
	// +required
	Name string `json:"name"`

	// Clusters where its template runs.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// Suspension stops scheduling, or changes from reaching clusters.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`

	// Scheduling true stops the scheduler from deciding clusters. Nil and false do
	// not.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// SchedulePriority orders bindings that wait to be placed.
type SchedulePriority struct {
	// Priority: the higher, the sooner. Default 0.
	// +optional
	// +kubebuilder:default=0
	Priority int32 `json:"priority,omitempty"`
}

// WorkloadAffinityGroups are the groups that a template is in, each written as
// key=value of the label that makes the group.
type WorkloadAffinityGroups struct {
	// AffinityGroup whose templates it is drawn to. Empty: none.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// AntiAffinityGroup whose templates it keeps away from. Empty: none.
	// +optional
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}

// ResourceBindingStatus says what came of a binding.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation that the last decision was
	// about. Less than metadata.generation: a decision is due. 0: none yet.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// SchedulerObservedAffinityName is the group of placement.clusterAffinities
	// that the last decision took. Empty: groups are not used.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// LastScheduledTime is when the last decision was made. Nil: none yet.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Conditions of the binding: Scheduled and FullyApplied.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is what each cluster reported, sorted by name.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is what one cluster reported.
type AggregatedStatusItem struct {
	// ClusterName is the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Status of the object there, as much of it as its kind's interpreter
	// reflects. Nil: nothing reported yet.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied is whether the desired manifest stands in the cluster.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage says why it does not.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health of the object there.
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health ResourceHealth `json:"health,omitempty"`

	// UnhealthySince is since when Health is Unhealthy, where the policy moves an unhealthy
	// application. Nil: it is not, or the policy does not.
	// +optional
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`

	// Drift says what somebody changed of the object there, or that they removed it, where
	// that is reported and left so. Empty: nothing.
	// +optional
	Drift string `json:"drift,omitempty"`
}

// ResourceHealth is how well an object does in its cluster. Empty: not judged.
type ResourceHealth string

const (
	// ResourceHealthy means that it does what it is there for.
	ResourceHealthy ResourceHealth = "Healthy"
	// ResourceUnhealthy means that it does not.
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	// ResourceUnknown means that its status does not tell.
	ResourceUnknown ResourceHealth = "Unknown"
)
