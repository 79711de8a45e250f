package inventory

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Changed returns the revision that last changed what a Kustomization applies. That is the last attempted one if it is
// not applied yet, or if the history does not record another one.
func Changed(status *kustomizev1.KustomizationStatus) string {
	last := status.History.Latest()
	if status.LastAppliedRevision != status.LastAttemptedRevision || last == nil || last.Metadata["revision"] != status.LastAppliedRevision {
		return status.LastAttemptedRevision
	}
	if since := last.Metadata[gitopsv1alpha1.ChangedKey]; since != "" {
		return since
	}
	return status.LastAttemptedRevision
}
