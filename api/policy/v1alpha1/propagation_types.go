package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Policy is a PropagationPolicy or a ClusterPropagationPolicy.
//
// +kubebuilder:object:generate=false
type Policy interface {
	metav1.Object
	runtime.Object
	// PropagationSpec points at the spec of the policy itself, not at a copy.
	PropagationSpec() *PropagationSpec
	// PropagationStatus points at the status of the policy itself, not at a copy.
	PropagationStatus() *PropagationStatus
}

var (
	_ Policy = (*PropagationPolicy)(nil)
	_ Policy = (*ClusterPropagationPolicy)(nil)
)

// PropagationPolicy says which templates of its namespace run in which member
// clusters. It is preferred to any ClusterPropagationPolicy that matches too.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=pp
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="CONFLICT-RESOLUTION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="PRIORITY",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type PropagationPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is propagated, and where to.
	// +required
	Spec PropagationSpec `json:"spec"`

	// Status reports whether the policy can act.
	// +optional
	Status PropagationStatus `json:"status,omitempty"`
}

// PropagationSpec implements Policy.
func (p *PropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// PropagationStatus implements Policy.
func (p *PropagationPolicy) PropagationStatus() *PropagationStatus { return &p.Status }

// PropagationPolicyList is a list of PropagationPolicies.
//
// +kubebuilder:object:root=true
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicy says which templates, of any namespace or of none,
// run in which member clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={karmada-io},shortName=cpp
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="CONFLICT-RESOLUTION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="PRIORITY",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type ClusterPropagationPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is propagated, and where to.
	// +required
	Spec PropagationSpec `json:"spec"`

	// Status reports whether the policy can act.
	// +optional
	Status PropagationStatus `json:"status,omitempty"`
}

// PropagationSpec implements Policy.
func (p *ClusterPropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// PropagationStatus implements Policy.
func (p *ClusterPropagationPolicy) PropagationStatus() *PropagationStatus { return &p.Status }

// ClusterPropagationPolicyList is a list of ClusterPropagationPolicies.
//
// +kubebuilder:object:root=true
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterPropagationPolicy `json:"items"`
}

// PropagationSpec says what is propagated, where to, and how.
type PropagationSpec struct {
	// ResourceSelectors pick the templates. A template that any of them picks is
	// covered.
	// +required
	// +kubebuilder:validation:MinItems=1
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Association is deprecated and ignored: use propagateDeps.
	// +optional
	Association bool `json:"association,omitempty"`

	// PropagateDeps takes along what a template refers to, such as ConfigMaps,
	// Secrets and claims. False, the default, propagates the template alone.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Placement says which clusters, and how replicas are shared among them.
	// Empty: all clusters, the same replicas in each.
	// +optional
	Placement Placement `json:"placement,omitempty"`

	// Priority decides between policies of the same kind that pick the same
	// template: the highest wins. Negative values are allowed. Default 0.
	// +optional
	// +kubebuilder:default=0
	Priority *int32 `json:"priority,omitempty"`

	// Preemption reports whether this policy takes over templates that a policy of
	// lower priority claimed before. Default Never.
	// +optional
	// +kubebuilder:default="Never"
	// +kubebuilder:validation:Enum=Always;Never
	Preemption PreemptionBehavior `json:"preemption,omitempty"`

	// DependentOverrides are override policies that must exist before this
	// policy acts: in the same namespace for a PropagationPolicy, cluster-wide
	// ones for a ClusterPropagationPolicy. Empty: it acts at once.
	// +optional
	DependentOverrides []string `json:"dependentOverrides,omitempty"`

	// SchedulerName is the scheduler that places the templates. Default
	// default-scheduler, which is the one built in.
	// +optional
	// +kubebuilder:default="default-scheduler"
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover says when and how workloads move off a cluster. Nil: an unhealthy
	// application is not moved, and a failed cluster is left as its taints say.
	// +optional
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution says what happens when a member already has an object of
	// that name that is not ours: Abort, the default, leaves it and reports,
	// Overwrite takes it over.
	// +optional
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// Drift says what happens when somebody changes or removes in a member what
	// the template says: Revert, the default, puts it back, Report leaves it and
	// says so. A change of the template is always sent. The annotation
	// work.flotilla.io/drift of a template wins over it.
	// +optional
	// +kubebuilder:validation:Enum=Revert;Report
	Drift DriftBehavior `json:"drift,omitempty"`

	// ActivationPreference Lazy makes a change of this policy take effect on a
	// template when that template changes next. Empty: at once.
	// +optional
	// +kubebuilder:validation:Enum=Lazy
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`

	// Suspension stops changes from reaching clusters. Nil: nothing is stopped.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the members' objects when the template is
	// deleted. Nil and false remove them with it.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority orders templates that wait to be placed. Nil: priority 0.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// PropagationStatus reports whether a policy can act, and what came of it.
type PropagationStatus struct {
	// ObservedGeneration is the metadata.generation that the conditions are about.
	// 0: not seen yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ObservedTime is when that generation of a Lazy policy was first seen:
	// templates that are older wait for their next change. Nil: the policy is not
	// Lazy, or was never changed.
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// Templates is how many templates the policy carries.
	// +optional
	Templates int32 `json:"templates,omitempty"`

	// Bindings is how many bindings these have. A template of a Lazy policy that
	// waits for its next change has none.
	// +optional
	Bindings int32 `json:"bindings,omitempty"`

	// Placed is how many of the bindings the last decision found clusters for.
	// +optional
	Placed int32 `json:"placed,omitempty"`

	// LastProblem is the latest of the problems that its templates and bindings
	// have now. Nil: they have none.
	// +optional
	LastProblem *PolicyProblem `json:"lastProblem,omitempty"`

	// Conditions of the policy. Type Ready: True when its selectors can be
	// followed and the overrides it depends on are there.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyProblem is what keeps a template of a policy from where it should be.
type PolicyProblem struct {
	// Object is the kind, namespace and name of the template.
	// +required
	Object string `json:"object"`

	// Message says what is wrong.
	// +required
	Message string `json:"message"`

	// At is when the problem began.
	// +required
	At metav1.Time `json:"at"`
}

// PreemptionBehavior reports whether a policy takes over claimed templates.
type PreemptionBehavior string

const (
	// PreemptAlways takes over from policies of lower priority.
	PreemptAlways PreemptionBehavior = "Always"
	// PreemptNever leaves claimed templates to whom they belong.
	PreemptNever PreemptionBehavior = "Never"
)

// ConflictResolution says what happens to a member's object that is in the way.
type ConflictResolution string

const (
	// ConflictOverwrite takes the object over.
	ConflictOverwrite ConflictResolution = "Overwrite"
	// ConflictAbort leaves the object alone and reports it.
	ConflictAbort ConflictResolution = "Abort"
)

// DriftBehavior says what happens to changes of others in a member. Empty:
// DriftRevert.
type DriftBehavior string

const (
	// DriftRevert puts back what the template says.
	DriftRevert DriftBehavior = "Revert"
	// DriftReport leaves the member as it is and says what differs.
	DriftReport DriftBehavior = "Report"
)

// ActivationPreference says when a change of policy takes effect.
type ActivationPreference string

// LazyActivation waits for the next change of the template.
const LazyActivation ActivationPreference = "Lazy"

// SchedulePriority says where a scheduling priority comes from.
type SchedulePriority struct {
	// PriorityClassSource is the kind of class that is named. KubePriorityClass:
	// a PriorityClass of scheduling.k8s.io on the hub.
	// +required
	// +kubebuilder:validation:Enum=KubePriorityClass
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`

	// PriorityClassName is the name of the class.
	// +required
	PriorityClassName string `json:"priorityClassName"`
}

// PriorityClassSource is a kind of priority class.
type PriorityClassSource string

// KubePriorityClass is a PriorityClass of scheduling.k8s.io on the hub.
const KubePriorityClass PriorityClassSource = "KubePriorityClass"

// Suspension stops changes from reaching clusters. At most one of the two says
// something.
type Suspension struct {
	// Dispatching true stops changes to all clusters. Nil and false stop none.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`

	// DispatchingOnClusters stops changes to the clusters it lists. Nil: to none.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters lists clusters.
type SuspendClusters struct {
	// ClusterNames are the clusters that changes do not reach.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}
