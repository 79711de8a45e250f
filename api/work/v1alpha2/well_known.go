package v1alpha2

// Names of the kinds.
const (
	// ResourceKindResourceBinding is the kind of a ResourceBinding.
	ResourceKindResourceBinding = "ResourceBinding"
	// ResourceKindClusterResourceBinding is the kind of a ClusterResourceBinding.
	ResourceKindClusterResourceBinding = "ClusterResourceBinding"
)

// Labels that tie templates, bindings, Works and members' objects together.
const (
	// ResourceBindingPermanentIDLabel holds the UUID of a ResourceBinding, on
	// itself, its Works and their manifests.
	ResourceBindingPermanentIDLabel = "resourcebinding.karmada.io/permanent-id"
	// ClusterResourceBindingPermanentIDLabel holds the UUID of a
	// ClusterResourceBinding, on itself, its Works and their manifests.
	ClusterResourceBindingPermanentIDLabel = "clusterresourcebinding.karmada.io/permanent-id"
	// WorkPermanentIDLabel holds the UUID of a Work, on itself and its manifests.
	WorkPermanentIDLabel = "work.karmada.io/permanent-id"
	// ManagedByKarmadaLabel marks a member's object as one of ours.
	ManagedByKarmadaLabel = "karmada.io/managed"
	// ManagedByKarmadaLabelValue is the value of ManagedByKarmadaLabel.
	ManagedByKarmadaLabelValue = "true"
	// KarmadaSystemLabel marks what belongs to the control plane itself.
	KarmadaSystemLabel = "karmada.io/system"
	// KarmadaSystemLabelValue is the value of KarmadaSystemLabel.
	KarmadaSystemLabelValue = "true"
	// BindingManagedByLabel names the kind that a binding was made by, other than
	// a policy.
	BindingManagedByLabel = "binding.karmada.io/managed-by"
	// DependedByLabelPrefix and BindingReferenceKey of the independent binding
	// make the key of a label on the binding of a dependency. Its value is the
	// independent binding's permanent id.
	DependedByLabelPrefix = "resourcebinding.karmada.io/depended-by-"
)

// Labels on templates.
const (
	// RetainReplicasLabel "true" leaves spec.replicas to the members.
	RetainReplicasLabel = "resourcetemplate.karmada.io/retain-replicas"
	// RetainReplicasValue is the value of RetainReplicasLabel that counts.
	RetainReplicasValue = "true"
	// ResourceTemplateClaimedByLabel names the kind that propagates the template
	// in the place of a policy.
	ResourceTemplateClaimedByLabel = "resourcetemplate.karmada.io/claimed-by"
	// DeletionProtectionLabelKey with value Always makes the hub refuse to delete
	// an object.
	DeletionProtectionLabelKey = "resourcetemplate.karmada.io/deletion-protected"
	// DeletionProtectionAlways is the value of DeletionProtectionLabelKey that
	// counts.
	DeletionProtectionAlways = "Always"
)

// Annotations that tie templates, bindings, Works and members' objects together.
const (
	// ResourceBindingNamespaceAnnotationKey is the namespace of the binding, on
	// Works and manifests.
	ResourceBindingNamespaceAnnotationKey = "resourcebinding.karmada.io/namespace"
	// ResourceBindingNameAnnotationKey is the name of the binding, on Works and
	// manifests.
	ResourceBindingNameAnnotationKey = "resourcebinding.karmada.io/name"
	// ClusterResourceBindingAnnotationKey is the name of the cluster binding, on
	// Works and manifests.
	ClusterResourceBindingAnnotationKey = "clusterresourcebinding.karmada.io/name"
	// WorkNamespaceAnnotation is the namespace of the Work, on members' objects.
	WorkNamespaceAnnotation = "work.karmada.io/namespace"
	// WorkNameAnnotation is the name of the Work, on members' objects.
	WorkNameAnnotation = "work.karmada.io/name"
	// HubAnnotation is the identity of the hub that applied a member's object: the
	// UID of its namespace kube-system.
	HubAnnotation = "work.flotilla.io/hub"
	// BindingDependenciesAnnotationKey on an independent binding is the JSON array
	// of what its template refers to. It is written and never read.
	BindingDependenciesAnnotationKey = "resourcebinding.karmada.io/dependencies"
	// ResourceTemplateUIDAnnotation is the UID of the template, on manifests.
	ResourceTemplateUIDAnnotation = "resourcetemplate.karmada.io/uid"
	// ResourceTemplateGenerationAnnotationKey is the generation of the template,
	// on manifests of kinds that count generations.
	ResourceTemplateGenerationAnnotationKey = "resourcetemplate.karmada.io/generation"
	// ManagedAnnotation lists the annotations of a manifest that are ours, sorted,
	// separated by commas.
	ManagedAnnotation = "resourcetemplate.karmada.io/managed-annotations"
	// ManagedLabels lists the labels of a manifest that are ours, sorted,
	// separated by commas.
	ManagedLabels = "resourcetemplate.karmada.io/managed-labels"
	// PullSecretsAnnotation on a service account in a member lists the image pull
	// secrets that the manifest has, sorted, separated by commas: the others are
	// the member's.
	PullSecretsAnnotation = "work.flotilla.io/image-pull-secrets"
	// ResourceConflictResolutionAnnotation on a template or manifest says what
	// happens to a member's object that is in the way.
	ResourceConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"
	// ResourceConflictResolutionOverwrite takes the member's object over.
	ResourceConflictResolutionOverwrite = "overwrite"
	// ResourceConflictResolutionAbort leaves the member's object alone.
	ResourceConflictResolutionAbort = "abort"
	// AllowCascadeAnnotation on a Namespace or CustomResourceDefinition that is
	// propagated, or on its Work, says with "true" that in members it is deleted with
	// all that others have in it; on a PersistentVolumeClaim or its Work, that it goes
	// with its data whenever its Work goes; on a StatefulSet, that the claims which it makes
	// go as its own retention policy says.
	AllowCascadeAnnotation = "propagation.flotilla.io/allow-cascade"
	// WantedAgainAnnotation on a Work that is being deleted says with "true" that what it
	// made is asked for again meanwhile: it stays in the member as it is, for the Work that
	// comes. With "undecided" it stays until one of both is known.
	WantedAgainAnnotation = "propagation.flotilla.io/wanted-again"
	WantedAgain           = "true"
	WantedAgainUndecided  = "undecided"
	// RemovalConfirmedAnnotation on a Work that is being deleted in a cluster in pull mode is the
	// control plane's answer to its agent, which was away meanwhile and asks whether to remove what
	// it made: the hash of the question in the condition DeletionBlocked.
	RemovalConfirmedAnnotation = "work.flotilla.io/removal-confirmed"
	// TemplateGoneAnnotation on the Work of a PersistentVolumeClaim is the UID of its template
	// once that is deleted: only then does the claim go with its Work.
	TemplateGoneAnnotation = "propagation.flotilla.io/template-gone"
	// LeavesFirstAnnotation on a Work that is to be deleted says with "true" that nothing may start
	// elsewhere before all that it runs has ended.
	LeavesFirstAnnotation = "propagation.flotilla.io/leaves-first"
	// AppliedByAnnotation says who applied a template or an override, and on a Work
	// all whose word is in its manifests: authors, as JSON. Admission writes it; none is
	// the control plane and its administrators.
	AppliedByAnnotation = "propagation.flotilla.io/applied-by"
	// DriftAnnotation on a template or Work says what happens to changes of
	// others in members; without it, what the policy says.
	DriftAnnotation = "work.flotilla.io/drift"
	// DriftReport leaves the member as it is and says what differs.
	DriftReport = "report"
	// DriftRevert puts back what the template says.
	DriftRevert = "revert"
	// SchedulingDecisionAnnotation on a binding is the JSON record of the last
	// placement decision: reason, message, at, affinityName. It is written with
	// the decision, and the binding's status is derived from it.
	SchedulingDecisionAnnotation = "scheduling.flotilla.io/decision"
)

// StatusWaiting is a field of the status that a cluster reports of an object: true
// while the object is queued, starting or held there. Its health is Healthy by then,
// as that is no reason to move it; people are told that it is not.
const StatusWaiting = "resourceWaiting"

// Finalizers.
const (
	// BindingControllerFinalizer holds a ResourceBinding until its Works are gone.
	BindingControllerFinalizer = "karmada.io/binding-controller"
	// ClusterResourceBindingControllerFinalizer holds a ClusterResourceBinding
	// until its Works are gone.
	ClusterResourceBindingControllerFinalizer = "karmada.io/cluster-resource-binding-controller"
	// BindingDependenciesDistributorFinalizer holds an independent binding until
	// the bindings of its dependencies forgot it.
	BindingDependenciesDistributorFinalizer = "karmada.io/binding-dependencies-distributor"
	// ExecutionControllerFinalizer holds a Work until its objects are gone from
	// the member.
	ExecutionControllerFinalizer = "karmada.io/execution-controller"
)

// Namespaces on the hub.
const (
	// NamespaceKarmadaSystem holds what belongs to the control plane itself.
	NamespaceKarmadaSystem = "karmada-system"
	// NamespaceKarmadaCluster holds credentials and heartbeats of members. In a
	// member it holds the accounts that the control plane uses.
	NamespaceKarmadaCluster = "karmada-cluster"
)

// Condition types of a binding.
const (
	// Scheduled is True when the last placement decision found clusters.
	Scheduled = "Scheduled"
	// FullyApplied is True when every cluster of the placement has the manifest.
	FullyApplied = "FullyApplied"
	// Interpreted is False while a rule of the interpreter fails, in a cluster or
	// for the template's status, with the reason InterpreterFailed; not there
	// otherwise.
	Interpreted = "Interpreted"
	// Drifted is True while a cluster's object differs from what was applied and
	// is left so, and False once all differences were put back.
	Drifted = "Drifted"
	// Evictable is False, with the reason NoReplacement, while the template is to be moved
	// off a cluster and has no place to go to; not there otherwise.
	Evictable = "Evictable"
	// NoReplacementReason goes with Evictable.
	NoReplacementReason = "NoReplacement"
)

// Reasons of the condition Scheduled.
const (
	// BindingReasonSuccess goes with True.
	BindingReasonSuccess = "Success"
	// BindingReasonSchedulerError goes with False: the decision failed. Retried.
	BindingReasonSchedulerError = "SchedulerError"
	// BindingReasonNoClusterFit goes with False: no cluster may run the template.
	// clusters stays as it was.
	BindingReasonNoClusterFit = "NoClusterFit"
	// BindingReasonUnschedulable goes with False: the clusters have no room.
	// Retried; clusters stays as it was.
	BindingReasonUnschedulable = "Unschedulable"
	// BindingReasonQuotaExceeded goes with False: a FederatedResourceQuota is used
	// up.
	BindingReasonQuotaExceeded = "QuotaExceeded"
)

// SuccessfulSchedulingMessage goes with BindingReasonSuccess.
const SuccessfulSchedulingMessage = "Binding has been scheduled successfully."

// Reasons and messages of the condition FullyApplied.
const (
	// FullyAppliedSuccessReason goes with True.
	FullyAppliedSuccessReason = "FullyAppliedSuccess"
	// FullyAppliedSuccessMessage goes with FullyAppliedSuccessReason.
	FullyAppliedSuccessMessage = "All works have been successfully applied"
	// FullyAppliedFailedReason goes with False.
	FullyAppliedFailedReason = "FullyAppliedFailed"
	// FullyAppliedFailedMessage goes with FullyAppliedFailedReason.
	FullyAppliedFailedMessage = "Failed to apply all works, see status.aggregatedStatus for details"
)

// Reasons and producers of eviction tasks.
const (
	// EvictionReasonTaintUntolerated is a taint that the template does not tolerate.
	EvictionReasonTaintUntolerated = "TaintUntolerated"
	// EvictionReasonApplicationFailure is an application that stayed unhealthy.
	EvictionReasonApplicationFailure = "ApplicationFailure"
	// EvictionReasonMoved is a template that was placed elsewhere.
	EvictionReasonMoved = "Moved"
	// EvictionProducerTaintManager is who evicts for taints.
	EvictionProducerTaintManager = "TaintManager"
	// EvictionProducerApplicationFailover is who evicts unhealthy applications, and
	// EvictionProducerClusterApplicationFailover those without a namespace.
	EvictionProducerApplicationFailover        = "resource-binding-application-failover-controller"
	EvictionProducerClusterApplicationFailover = "cluster-resource-binding-application-failover-controller"
	// EvictionProducerScheduler is the scheduler itself: a cluster is left for others.
	EvictionProducerScheduler = "Scheduler"
	// EvictionProducerDrain is who moves templates off clusters that are drained.
	EvictionProducerDrain = "Drain"
)

// Reasons of Events on bindings and their templates.
const (
	// EventReasonCleanupWorkFailed says that Works of clusters left behind could not be removed.
	EventReasonCleanupWorkFailed = "CleanupWorkFailed"
	// EventReasonSyncScheduleResultToDependenciesSucceed says that dependencies follow the placement.
	EventReasonSyncScheduleResultToDependenciesSucceed = "SyncScheduleResultToDependenciesSucceed"
	// EventReasonSyncScheduleResultToDependenciesFailed says that dependencies could not follow the placement.
	EventReasonSyncScheduleResultToDependenciesFailed = "SyncScheduleResultToDependenciesFailed"
	// EventReasonDependencyPolicyConflict says that two dependents want different things of one dependency.
	EventReasonDependencyPolicyConflict = "DependencyPolicyConflict"
	// EventReasonSyncWorkFailed says that a Work could not be written.
	EventReasonSyncWorkFailed = "SyncWorkFailed"
	// EventReasonSyncWorkSucceed says that the Works were written.
	EventReasonSyncWorkSucceed = "SyncWorkSucceed"
	// EventReasonAggregateStatusFailed says that the clusters' statuses could not be put together.
	EventReasonAggregateStatusFailed = "AggregateStatusFailed"
	// EventReasonAggregateStatusSucceed says that the clusters' statuses were put together.
	EventReasonAggregateStatusSucceed = "AggregateStatusSucceed"
	// EventReasonScheduleBindingFailed says that no placement was found.
	EventReasonScheduleBindingFailed = "ScheduleBindingFailed"
	// EventReasonScheduleBindingSucceed says that a placement was found.
	EventReasonScheduleBindingSucceed = "ScheduleBindingSucceed"
	// EventReasonDescheduleBindingFailed says that replicas that do not run could not be taken back.
	EventReasonDescheduleBindingFailed = "DescheduleBindingFailed"
	// EventReasonDescheduleBindingSucceed says that replicas that do not run were taken back.
	EventReasonDescheduleBindingSucceed = "DescheduleBindingSucceed"
	// EventReasonEvictWorkloadFromClusterSucceed says that the template left a cluster.
	EventReasonEvictWorkloadFromClusterSucceed = "EvictWorkloadFromClusterSucceed"
	// EventReasonEvictWorkloadFromClusterFailed says that the template could not leave a cluster.
	EventReasonEvictWorkloadFromClusterFailed = "EvictWorkloadFromClusterFailed"
	// EventReasonGetDependenciesSucceed says that the template's references were read.
	EventReasonGetDependenciesSucceed = "GetDependenciesSucceed"
	// EventReasonGetDependenciesFailed says that the template's references could not be read.
	EventReasonGetDependenciesFailed = "GetDependenciesFailed"
	// EventReasonRefNotPermitted says that the template refers to what lies outside
	// of its namespace, and that nobody grants it.
	EventReasonRefNotPermitted = "RefNotPermitted"
	// EventReasonGetComponentsSucceed says that the template's parts were read.
	EventReasonGetComponentsSucceed = "GetComponentsSucceed"
	// EventReasonGetComponentsFailed says that the template's parts could not be read.
	EventReasonGetComponentsFailed = "GetComponentsFailed"
	// EventReasonGetReplicasSucceed says that the template's replicas were read.
	EventReasonGetReplicasSucceed = "GetReplicasSucceed"
	// EventReasonGetReplicasFailed says that the template's replicas could not be read.
	EventReasonGetReplicasFailed = "GetReplicasFailed"
)
