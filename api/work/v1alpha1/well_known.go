package v1alpha1

// ResourceKindWork is the kind of a Work.
const ResourceKindWork = "Work"

// Condition types of a Work. Progressing, Available and Degraded are never
// written.
const (
	// WorkApplied is True when the member has all manifests as desired.
	WorkApplied = "Applied"
	// WorkProgressing is declared for clients that know it.
	WorkProgressing = "Progressing"
	// WorkAvailable is declared for clients that know it.
	WorkAvailable = "Available"
	// WorkDegraded is declared for clients that know it.
	WorkDegraded = "Degraded"
	// WorkDispatching is True unless changes are kept from the member.
	WorkDispatching = "Dispatching"
	// WorkInterpreted is False while a rule of the interpreter fails for the
	// member's object, with the reason InterpreterFailed; not there otherwise.
	WorkInterpreted = "Interpreted"
	// WorkDrifted is True while the member's object differs from what was applied
	// and is left so, and False once a difference was put back.
	WorkDrifted = "Drifted"
	// WorkPodsReady is False while the Pods of the member's object keep it from being
	// ready, with their reason, such as ErrImagePull; not there otherwise.
	WorkPodsReady = "PodsReady"
	// WorkDeletionBlocked is True while a Work that is being deleted cannot go, with
	// the reason why; not there otherwise.
	WorkDeletionBlocked = "DeletionBlocked"
)

// Reasons of the conditions DeletionBlocked, Interpreted, Drifted and PodsReady.
const (
	// WorkPodsNotReadyReason goes with PodsReady False where the reason of the Pods is none
	// that a condition may have.
	WorkPodsNotReadyReason = "PodsNotReady"
	// WorkHoldsOthersReason goes with DeletionBlocked True: objects of others would
	// go with the namespace or definition.
	WorkHoldsOthersReason = "HoldsOthers"
	// WorkHoldsOwnReason goes with DeletionBlocked True: it waits for what this hub has
	// in the namespace, or of the kind that is defined, in the member.
	WorkHoldsOwnReason = "HoldsOwn"
	// WorkTerminatingReason goes with DeletionBlocked True: the member was told to
	// delete an object, and something there keeps it.
	WorkTerminatingReason = "Terminating"
	// WorkDeletionFailedReason goes with DeletionBlocked True: the member does not
	// delete an object.
	WorkDeletionFailedReason = "DeletionFailed"
	// WorkLastCopyReason goes with DeletionBlocked True: the member may have the only
	// copy that serves.
	WorkLastCopyReason = "LastCopy"
	// WorkWantedAgainReason goes with DeletionBlocked True: the removal was recalled, and nothing
	// is removed any more. The Work ends in favour of the next one, or its removal goes on after all.
	WorkWantedAgainReason = "WantedAgain"
	// WorkInterpreterFailedReason goes with Interpreted False.
	WorkInterpreterFailedReason = "InterpreterFailed"
	// WorkDriftReportedReason goes with Drifted True.
	WorkDriftReportedReason = "DriftReported"
	// WorkDriftRevertedReason goes with Drifted False.
	WorkDriftRevertedReason = "DriftReverted"
)

// Reasons and messages of the condition Applied.
const (
	// WorkAppliedSuccessfulReason goes with True.
	WorkAppliedSuccessfulReason = "AppliedSuccessful"
	// WorkAppliedSuccessfulMessage goes with WorkAppliedSuccessfulReason.
	WorkAppliedSuccessfulMessage = "Manifest has been successfully applied"
	// WorkHeldPrefix begins what the condition Applied says of a manifest while the
	// control plane waits, since its store was set back: what would be done.
	WorkHeldPrefix = "held: would "
	// WorkAsItIsSuffix ends what the condition Applied says of a manifest whose object is
	// somebody else's in the member: it is not the Work's, and stays when that goes.
	WorkAsItIsSuffix = ": it is used as it is, and stays when the one here goes"
	// WorkUnknownAccountReason goes with False: nobody in the member stands for who
	// applied the template.
	WorkUnknownAccountReason = "UnknownAccount"
	// WorkAccountForbiddenReason goes with False: the member does not let who applied
	// the template do it there.
	WorkAccountForbiddenReason = "AccountForbidden"
	// WorkAppliedFailedReason goes with False, for all other faults.
	WorkAppliedFailedReason = "AppliedFailed"
)

// Reasons and messages of the condition Dispatching.
const (
	// WorkDispatchingReason goes with True.
	WorkDispatchingReason = "Dispatching"
	// WorkDispatchingMessage goes with WorkDispatchingReason.
	WorkDispatchingMessage = "Work is being dispatched to member clusters."
	// WorkSuspendDispatchingReason goes with False.
	WorkSuspendDispatchingReason = "SuspendDispatching"
	// WorkSuspendDispatchingMessage goes with WorkSuspendDispatchingReason.
	WorkSuspendDispatchingMessage = "Work dispatching is in a suspended state."
)

// Reasons of Events on Works.
const (
	// EventReasonReflectStatusSucceed says that the object's status was read.
	EventReasonReflectStatusSucceed = "ReflectStatusSucceed"
	// EventReasonReflectStatusFailed says that the object's status could not be read.
	EventReasonReflectStatusFailed = "ReflectStatusFailed"
	// EventReasonInterpretHealthSucceed says that the object's health was judged.
	EventReasonInterpretHealthSucceed = "InterpretHealthSucceed"
	// EventReasonInterpretHealthFailed says that the object's health could not be judged.
	EventReasonInterpretHealthFailed = "InterpretHealthFailed"
	// EventReasonSyncWorkloadFailed says that a manifest could not be applied.
	EventReasonSyncWorkloadFailed = "SyncFailed"
	// EventReasonSyncWorkloadSucceed says that a manifest was applied.
	EventReasonSyncWorkloadSucceed = "SyncSucceed"
	// EventReasonWorkDispatching says that dispatching was suspended or resumed.
	EventReasonWorkDispatching = "WorkDispatching"
	// EventReasonDeletionBlocked says that a Work that is being deleted cannot go.
	EventReasonDeletionBlocked = "DeletionBlocked"
	// EventReasonClaimKept says that a PersistentVolumeClaim stays in a member though its Work goes.
	EventReasonClaimKept = "ClaimKept"
	// EventReasonDriftReported says that a member's object differs and is left so.
	EventReasonDriftReported = "DriftReported"
	// EventReasonDriftReverted says that a member's object differed and was put back.
	EventReasonDriftReverted = "DriftReverted"
	// EventReasonInterpreterFailed says that a rule of the interpreter fails for a
	// member's object.
	EventReasonInterpreterFailed = "InterpreterFailed"
)
