package apply

import "github.com/flotilla-io/flotilla/reconciler/inventory"

// Reasons of our own, next to Flux's and those of packages builder, applier, dependencies, health, kustomizations and siblings.
const (
	// ReasonPruneBlocked says that the brake refused to delete something.
	ReasonPruneBlocked = inventory.ReasonPruneBlocked
	// ReasonSharedObject says that another Kustomization of the source holds the same object.
	ReasonSharedObject = "SharedObject"
	// ReasonDriftCorrected is the reason of the event about objects that were brought back to their revision.
	ReasonDriftCorrected = "DriftCorrected"
	// ReasonOmitted is the reason of the event about what of a revision is not applied, such as owner references.
	ReasonOmitted = "FieldsOmitted"
)
