package inventory

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Changed returns the revision since which a Kustomization applies what it does: the last one that was
// attempted, where that is not applied, or nothing else is known.
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
