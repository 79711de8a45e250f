package v1alpha1

// Names of the kinds.
const (
	// ResourceKindPropagationPolicy is the kind of a PropagationPolicy.
	ResourceKindPropagationPolicy = "PropagationPolicy"
	// ResourceKindClusterPropagationPolicy is the kind of a ClusterPropagationPolicy.
	ResourceKindClusterPropagationPolicy = "ClusterPropagationPolicy"
	// ResourceKindOverridePolicy is the kind of an OverridePolicy.
	ResourceKindOverridePolicy = "OverridePolicy"
	// ResourceKindClusterOverridePolicy is the kind of a ClusterOverridePolicy.
	ResourceKindClusterOverridePolicy = "ClusterOverridePolicy"
)

// Labels by which a policy, and the templates and bindings it claimed, know
// each other.
const (
	// PropagationPolicyPermanentIDLabel holds the UUID of a PropagationPolicy, on
	// itself and on what it claimed.
	PropagationPolicyPermanentIDLabel = "propagationpolicy.karmada.io/permanent-id"
	// ClusterPropagationPolicyPermanentIDLabel holds the UUID of a
	// ClusterPropagationPolicy, on itself and on what it claimed.
	ClusterPropagationPolicyPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"
	// NamespaceSkipAutoPropagationLabel "true" on a Namespace keeps it from being
	// made in every member.
	NamespaceSkipAutoPropagationLabel = "namespace.karmada.io/skip-auto-propagation"
	// FederatedResourceQuotaNamespaceLabel holds the namespace of the quota that a
	// Work was made for.
	FederatedResourceQuotaNamespaceLabel = "federatedresourcequota.karmada.io/namespace"
	// FederatedResourceQuotaNameLabel holds the name of the quota that a Work was
	// made for.
	FederatedResourceQuotaNameLabel = "federatedresourcequota.karmada.io/name"
)

// Annotations that name policies.
const (
	// PropagationPolicyNamespaceAnnotation is the namespace of the policy that
	// claimed a template, on it and its binding.
	PropagationPolicyNamespaceAnnotation = "propagationpolicy.karmada.io/namespace"
	// PropagationPolicyNameAnnotation is the name of the policy that claimed a
	// template, on it and its binding.
	PropagationPolicyNameAnnotation = "propagationpolicy.karmada.io/name"
	// ClusterPropagationPolicyAnnotation is the name of the cluster policy that
	// claimed a template, on it and its binding.
	ClusterPropagationPolicyAnnotation = "clusterpropagationpolicy.karmada.io/name"
	// PolicyPlacementAnnotation on a binding is the JSON of the Placement that the
	// last scheduling went by.
	PolicyPlacementAnnotation = "policy.karmada.io/applied-placement"
	// AppliedOverrides on a Work lists the override policies that were applied, as
	// a JSON array of {policyName, overriders}, sorted by name.
	AppliedOverrides = "policy.karmada.io/applied-overrides"
	// AppliedClusterOverrides is AppliedOverrides for cluster override policies.
	AppliedClusterOverrides = "policy.karmada.io/applied-cluster-overrides"
)

// Finalizers of policies.
const (
	// PropagationPolicyControllerFinalizer holds a PropagationPolicy until its
	// claims are undone.
	PropagationPolicyControllerFinalizer = "karmada.io/propagation-policy-controller"
	// ClusterPropagationPolicyControllerFinalizer holds a ClusterPropagationPolicy
	// until its claims are undone.
	ClusterPropagationPolicyControllerFinalizer = "karmada.io/cluster-propagation-policy-controller"
)

// DefaultSchedulerName is the scheduler built in.
const DefaultSchedulerName = "default-scheduler"

// PolicyReady is the condition type that reports whether a policy can act.
const PolicyReady = "Ready"

// Reasons of the condition Ready of a policy.
const (
	// PolicyReasonMatched goes with True: the selectors can be followed.
	PolicyReasonMatched = "Matched"
	// PolicyReasonNothingSelected goes with True: the selectors can be followed, and the
	// policy carries nothing.
	PolicyReasonNothingSelected = "NothingSelected"
	// PolicyReasonNotTakenUp goes with True: the selectors can be followed, and something that
	// they mean cannot be carried.
	PolicyReasonNotTakenUp = "NotTakenUp"
	// PolicyReasonUnknownCluster goes with True: clusterNames names a cluster that is not in
	// the fleet, which may join it.
	PolicyReasonUnknownCluster = "UnknownCluster"
	// PolicyReasonUnknownAPI goes with False: a selector names an API that the hub
	// does not serve.
	PolicyReasonUnknownAPI = "UnknownAPI"
	// PolicyReasonWaitingForOverrides goes with False: an entry of
	// dependentOverrides does not exist yet.
	PolicyReasonWaitingForOverrides = "WaitingForOverrides"
	// PolicyReasonInvalidSelector goes with False: a selector cannot be read.
	PolicyReasonInvalidSelector = "InvalidSelector"
	// PolicyReasonUnknownPriorityClass goes with False: the PriorityClass that
	// schedulePriority names does not exist.
	PolicyReasonUnknownPriorityClass = "UnknownPriorityClass"
)

// Reasons of Events on templates about policies.
const (
	// EventReasonApplyPolicyFailed says that no policy could be applied.
	EventReasonApplyPolicyFailed = "ApplyPolicyFailed"
	// EventReasonApplyPolicySucceed says that a policy claimed the template.
	EventReasonApplyPolicySucceed = "ApplyPolicySucceed"
	// EventReasonApplyOverridePolicyFailed says that an override could not be applied.
	EventReasonApplyOverridePolicyFailed = "ApplyOverridePolicyFailed"
	// EventReasonApplyOverridePolicySucceed says that overrides were applied.
	EventReasonApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"
	// EventReasonPreemptPolicyFailed says that a claim could not be taken over.
	EventReasonPreemptPolicyFailed = "PreemptPolicyFailed"
	// EventReasonPreemptPolicySucceed says that a claim was taken over.
	EventReasonPreemptPolicySucceed = "PreemptPolicySucceed"
)

// Reasons of Events on a FederatedResourceQuota.
const (
	// EventReasonCollectOverallStatusFailed says that usage could not be added up.
	EventReasonCollectOverallStatusFailed = "CollectOverallStatusFailed"
	// EventReasonCollectOverallStatusSucceed says that usage was added up.
	EventReasonCollectOverallStatusSucceed = "CollectOverallStatusSucceed"
)
