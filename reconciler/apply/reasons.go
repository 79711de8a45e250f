package apply

import "github.com/flotilla-io/flotilla/reconciler/inventory"

// Reasons of our own, next to Flux's and those of packages builder, applier, dependencies, health and siblings.
const (
	// ReasonPruneBlocked says that the brake refused to delete something.
	ReasonPruneBlocked = inventory.ReasonPruneBlocked
	// ReasonInvalidAccount says that spec.serviceAccountName is no valid name.
	ReasonInvalidAccount = "InvalidServiceAccount"
	// ReasonInvalidAnnotation says that an annotation has an invalid value.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonNotSupported says that a field asks for something unsupported.
	ReasonNotSupported = "NotSupported"
	// ReasonSharedObject says that another Kustomization of the source holds the same object.
	ReasonSharedObject = "SharedObject"
	// ReasonDriftCorrected is the reason of the event about objects that were brought back to their revision.
	ReasonDriftCorrected = "DriftCorrected"
	// ReasonOmitted is the reason of the event about what of a revision is not applied, such as owner references.
	ReasonOmitted = "FieldsOmitted"
)
