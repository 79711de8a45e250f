package apply

// Reasons of our own, next to Flux's and those of packages builder, applier, dependencies, health and siblings.
const (
	// ReasonPruneBlocked says that a revision would remove more than is allowed
	// without a person's word.
	ReasonPruneBlocked = "PruneBlocked"
	// ReasonInvalidAccount says that spec.serviceAccountName is no name of one.
	ReasonInvalidAccount = "InvalidServiceAccount"
	// ReasonInvalidAnnotation says that an annotation has a value that it cannot have.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonNotSupported says that a field asks for what is not done yet.
	ReasonNotSupported = "NotSupported"
	// ReasonSharedObject says that an object stands in another Kustomization of the source, too.
	ReasonSharedObject = "SharedObject"
	// ReasonDriftCorrected is of the event that tells of objects which were brought back to what their revision says.
	ReasonDriftCorrected = "DriftCorrected"
)
