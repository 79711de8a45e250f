package v1alpha1

// Names of the kind, and limits of its fields.
const (
	// ResourceKindCluster is the kind of a Cluster.
	ResourceKindCluster = "Cluster"
	// ResourcePluralCluster is the kind's name in URLs.
	ResourcePluralCluster = "clusters"
	// ResourceSingularCluster is the kind's name in messages.
	ResourceSingularCluster = "cluster"
	// ClusterNameMaxLength is how many characters a cluster's name may have.
	ClusterNameMaxLength = 48
)

// Finalizers and Secret keys.
const (
	// ClusterControllerFinalizer holds a Cluster until its execution namespace
	// and what it left elsewhere are gone.
	ClusterControllerFinalizer = "karmada.io/cluster-controller"
	// SecretTokenKey is the key of the bearer token in the Secrets that
	// spec.secretRef and spec.impersonatorSecretRef name.
	SecretTokenKey = "token"
	// SecretCADataKey is the key of the PEM bundle that the member's serving
	// certificate is checked against.
	SecretCADataKey = "caBundle"
)

// Keys of taints on a Cluster.
const (
	// TaintClusterUnscheduler is set by the command cordon. Effect NoSchedule.
	TaintClusterUnscheduler = "cluster.karmada.io/unschedulable"
	// TaintClusterNotReady is set while Ready is False. Effect NoSchedule.
	TaintClusterNotReady = "cluster.karmada.io/not-ready"
	// TaintClusterUnreachable is set while Ready is Unknown. Effect NoSchedule.
	TaintClusterUnreachable = "cluster.karmada.io/unreachable"
	// TaintClusterDrain is set by the command drain: what runs in the cluster and does not
	// tolerate it is moved, whether failover is on or not. Effect NoExecute.
	TaintClusterDrain = "cluster.flotilla.io/drain"
)

// Annotations on a Cluster.
const (
	// TLSServerNameAnnotation is the name that the certificate of the member's API
	// server is checked for, where that is not the host of spec.apiEndpoint.
	TLSServerNameAnnotation = "cluster.flotilla.io/tls-server-name"
	// AccountsNamespaceAnnotation is the member's namespace that has the account
	// behind spec.impersonatorSecretRef, where that is not the namespace of the
	// Secret.
	AccountsNamespaceAnnotation = "cluster.flotilla.io/accounts-namespace"
	// OrphansAnnotation says what becomes of objects in the member that were applied
	// from here and that no Work names. OrphansDelete: they are removed. Anything
	// else, and nothing: they stay, and are told of.
	OrphansAnnotation = "cluster.flotilla.io/orphans"
	OrphansDelete     = "Delete"
	// ApplyAsAnnotation says as whom Works are applied in the member. ApplyAsAuthor: as
	// who applied the template, with the rights that he has on the hub. ApplyAsHub, and
	// nothing: as the hub itself, with all rights. A Cluster that is made without it has
	// ApplyAsAuthor from admission.
	ApplyAsAnnotation = "cluster.flotilla.io/apply-as"
	ApplyAsAuthor     = "Author"
	ApplyAsHub        = "ControlPlane"
	// ConfirmLostAnnotation says since when somebody knows that a cluster is lost, although
	// many were lost with it: what runs there may be moved. RFC 3339; a time before the
	// loss says nothing of it.
	ConfirmLostAnnotation = "cluster.flotilla.io/confirm-lost"
)

// ClaimAnnotation on the namespace kube-system of a member says which hub has it:
// its JSON is a claim. Hubs write it, and leave a member alone that is another's.
const ClaimAnnotation = "cluster.flotilla.io/claim"

// ReleasedAnnotation on the namespace kube-system of a member that no hub has says which
// one let go of it, and from where: its JSON is a claim. A copy of that hub does not take
// the member, nor does an agent that is not in touch with it.
const ReleasedAnnotation = "cluster.flotilla.io/released"

// AgentLease in the namespace kube-system of a member in pull mode is the Lease of the
// one agent that acts there.
const AgentLease = "flotilla-agent"

// HubInfoName is the ConfigMap in karmada-system that tells clients about the hub: its
// version, and where it acts from.
const (
	HubInfoName       = "flotilla-info"
	HubInfoVersionKey = "version"
	HubInfoPlaceKey   = "place"
)

// NodeProfileName is the ConfigMap in the execution namespace of a cluster in pull mode in
// which its agent tells of the cluster's nodes, as policies/estimate/profile reads it, and of
// what waits for one, as policies/estimate/waiting does.
const (
	NodeProfileName       = "node-profile"
	NodeProfileKey        = "profile"
	NodeProfileWaitingKey = "waiting"
)

// OpenedPath on the hub answers with the revision at which its loops began to work on the
// store, as a decimal number; 0 where others may write that. The header Last-Modified is
// when the control plane was started.
const OpenedPath = "/flotilla/opened"

// HistoryAnnotation on the namespace kube-system of the hub is the JSON of its
// history: which runs of its loops there were, and whether it was set back and waits.
const HistoryAnnotation = "cluster.flotilla.io/history"

// MarkAnnotation on the Lease of a cluster in pull mode is the JSON of how far its
// member has seen the hub go, and of whether that is further than the hub is now.
const MarkAnnotation = "cluster.flotilla.io/mark"

// SilentAnnotation on the Lease of a cluster in pull mode says that the member did not
// answer its agent at that renewal: the value is the renewTime, and another one says
// nothing.
const SilentAnnotation = "cluster.flotilla.io/silent"

// Annotations on objects that were answered for a member.
const (
	// CacheSourceAnnotationKey names the member that a cached object came from.
	CacheSourceAnnotationKey = "resource.karmada.io/cached-from-cluster"
	// QuerySourceAnnotationKey names the member that a queried object came from.
	QuerySourceAnnotationKey = "resource.karmada.io/query-from-cluster"
)

// Condition types of a Cluster.
const (
	// ClusterConditionReady is True while the member answers and is healthy.
	ClusterConditionReady = "Ready"
	// ClusterConditionHeld is True while the hub changes nothing in the member, since its
	// store was set back, and False while it waits for others, and has compared this one;
	// it is left out otherwise.
	ClusterConditionHeld = "Held"
	// ClusterConditionClaimed is False while the hub cannot write its claim to the
	// member; it is left out otherwise.
	ClusterConditionClaimed = "Claimed"
	// ClusterConditionOrphansFound is True while objects in the member were applied
	// from here and no Work names them; it is left out otherwise.
	ClusterConditionOrphansFound = "OrphansFound"
	// ClusterConditionClaimsKept is True while PersistentVolumeClaims stay in the member with their data
	// although no Work names them, and names them; it is left out otherwise.
	ClusterConditionClaimsKept = "ClaimsKept"
	// OrphansFoundReason goes with True of either.
	OrphansFoundReason = "NotNamedByAWork"
	// ClusterConditionObjectsUnread is True while the member answers, and objects of some
	// kinds cannot be read there: what Works say of these is of before. It is left out
	// otherwise.
	ClusterConditionObjectsUnread = "ObjectsUnread"
	// ObjectsUnreadReason goes with True.
	ObjectsUnreadReason = "CannotBeRead"
	// ClusterConditionMassFailureSuspected is True while the cluster is lost together with so
	// many others that nothing is moved off it; it is left out otherwise.
	ClusterConditionMassFailureSuspected = "MassFailureSuspected"
	// MassFailureReason goes with True.
	MassFailureReason = "ManyClustersLost"
	// ClusterConditionEvictionSlowed is True while templates wait to leave the cluster, and are moved more slowly than was
	// set; it is left out otherwise.
	ClusterConditionEvictionSlowed = "EvictionSlowed"
	// EvictionSlowedReason goes with True.
	EvictionSlowedReason = "MovedAreNotHealthy"
	// ClusterConditionCompleteAPIEnablements is True when status.apiEnablements
	// lists all that the member serves, so that what is absent is not served.
	ClusterConditionCompleteAPIEnablements = "CompleteAPIEnablements"
)

// Reasons and messages of the condition Ready.
const (
	// ClusterReadyReason goes with True.
	ClusterReadyReason = "ClusterReady"
	// ClusterReadyMessage goes with ClusterReadyReason.
	ClusterReadyMessage = "cluster is healthy and ready to accept workloads"
	// ClusterNotReadyReason goes with False: the member answers, but not well.
	ClusterNotReadyReason = "ClusterNotReady"
	// ClusterNotReadyMessage goes with ClusterNotReadyReason.
	ClusterNotReadyMessage = "cluster is reachable but health endpoint responded without ok"
	// ClusterNotReachableReason goes with False: no answer.
	ClusterNotReachableReason = "ClusterNotReachable"
	// ClusterNotReachableMessage goes with ClusterNotReachableReason.
	ClusterNotReachableMessage = "cluster is not reachable"
	// ClusterUntrustedMessage is in the message of one that shows a certificate which is not
	// trusted, as one does that was built anew.
	ClusterUntrustedMessage = "its certificate is not trusted"
	// ClusterIdentityMismatchReason goes with False: what answers is another cluster
	// than the one that was registered. Karmada does not have it.
	ClusterIdentityMismatchReason = "IdentityMismatch"
	// ClusterClaimedReason goes with False: the member is another hub's. Karmada does
	// not have it.
	ClusterClaimedReason = "ClaimedByAnotherHub"
	// ClusterElsewhereReason goes with False: another copy of the hub acts in the member.
	// Karmada does not have it.
	ClusterElsewhereReason = "ActsElsewhere"
	// ClusterMovingReason goes with False: the hub is where it was not when it last acted in
	// the member, and waits whether another copy answers from there. Karmada does not have
	// it.
	ClusterMovingReason = "Moving"
	// ClusterCredentialsRefusedReason goes with False: the member is there, and does not
	// let the hub in. Karmada does not have it.
	ClusterCredentialsRefusedReason = "CredentialsRefused"
	// ClusterAnswersAgainReason goes with False: the member is well again, and not yet for
	// as long as it takes to count as ready. Karmada does not have it.
	ClusterAnswersAgainReason = "AnswersAgain"
	// ClusterStatusCollectionFailedReason goes with False: the member is healthy
	// but its state could not be read.
	ClusterStatusCollectionFailedReason = "StatusCollectionFailed"
	// ClusterStatusNeverUpdatedReason goes with Unknown: the agent never reported.
	ClusterStatusNeverUpdatedReason = "ClusterStatusNeverUpdated"
	// ClusterStatusUnknownReason goes with Unknown: the agent stopped reporting.
	ClusterStatusUnknownReason = "ClusterStatusUnknown"
	// ClusterNotHeardYetReason goes with Unknown, where programs show a cluster that was
	// ready before the control plane was started and has not been heard of since. It is
	// never stored. Karmada does not have it.
	ClusterNotHeardYetReason = "NotHeardYet"
)

// Reasons of the condition CompleteAPIEnablements.
const (
	// APIEnablementsCompleteReason goes with True.
	APIEnablementsCompleteReason = "Complete"
	// APIEnablementsPartialReason goes with False: some groups could not be read.
	APIEnablementsPartialReason = "Partial"
	// APIEnablementsEmptyReason goes with False: none could be read.
	APIEnablementsEmptyReason = "Empty"
)

// Reasons of Events on a Cluster.
const (
	// EventReasonEvictionSlowed: what runs in the cluster is moved more slowly than was set, as what was moved does not get healthy.
	EventReasonEvictionSlowed = "EvictionSlowed"
	// EventReasonPropertiesNotApproved says that an agent says of its cluster what no administrator said.
	EventReasonPropertiesNotApproved = "PropertiesNotApproved"
	// EventReasonCopyRefused says that a copy of the hub wanted to act in a cluster.
	EventReasonCopyRefused = "CopyRefused"
	// EventReasonEstimatorUnavailable says that the estimator of the cluster does not answer, or that its answers make no sense.
	EventReasonEstimatorUnavailable = "EstimatorUnavailable"
	// EventReasonEstimatorAvailable says that it answers again.
	EventReasonEstimatorAvailable = "EstimatorAvailable"
	// EventReasonEndpointChanged says that a cluster in pull mode is reached elsewhere, or in another way, than before.
	EventReasonEndpointChanged = "EndpointChanged"
	// EventReasonCreateExecutionSpaceFailed says that the execution namespace could not be made.
	EventReasonCreateExecutionSpaceFailed = "CreateExecutionSpaceFailed"
	// EventReasonCreateExecutionSpaceSucceed says that the execution namespace was made.
	EventReasonCreateExecutionSpaceSucceed = "CreateExecutionSpaceSucceed"
	// EventReasonRemoveExecutionSpaceFailed says that the execution namespace could not be removed.
	EventReasonRemoveExecutionSpaceFailed = "RemoveExecutionSpaceFailed"
	// EventReasonRemoveExecutionSpaceSucceed says that the execution namespace was removed.
	EventReasonRemoveExecutionSpaceSucceed = "RemoveExecutionSpaceSucceed"
	// EventReasonTaintClusterFailed says that taints could not be written.
	EventReasonTaintClusterFailed = "TaintClusterFailed"
	// EventReasonTaintClusterSucceed says that taints were changed.
	EventReasonTaintClusterSucceed = "TaintClusterSucceed"
	// EventReasonSyncImpersonationConfigSucceed says that the member's impersonation rights are up to date.
	EventReasonSyncImpersonationConfigSucceed = "SyncImpersonationConfigSucceed"
	// EventReasonSyncImpersonationConfigFailed says that the member's impersonation rights could not be written.
	EventReasonSyncImpersonationConfigFailed = "SyncImpersonationConfigFailed"
)

// GroupMasters is the group that the proxy gives those who administer the hub,
// in members. Nobody has it by a certificate or a token of the hub.
const GroupMasters = "flotilla:masters"
