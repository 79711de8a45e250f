package apply

import "github.com/flotilla-io/flotilla/reconciler/inventory"

// Reasons of our own, next to Flux's and those of packages builder, applier, dependencies, health and siblings.
const (
	// ReasonPruneBlocked is the brake's.
	ReasonPruneBlocked = inventory.ReasonPruneBlocked
	// ReasonInvalidAccount says that spec.serviceAccountName is no name of one.
	ReasonInvalidAccount = "InvalidServiceAccount"
	// ReasonInvalidAnnotation says that an annotation has a value that it cannot have.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonNotSupported says that a field asks for what is not done yet.
	ReasonNotSupported = "NotSupported"
	// ReasonSharedObject says that an object stands in another Kustomization of the source, too.
	ReasonSharedObject = "SharedObject"
	// ReasonDriftCorrected is of the event about objects that were brought back to what their revision says.
	ReasonDriftCorrected = "DriftCorrected"
	// ReasonOmitted is of the event about what a revision has and is not applied, such as owner references.
	ReasonOmitted = "FieldsOmitted"
)
