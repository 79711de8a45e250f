package kustomizations

import (
	"maps"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Outcome is the outcome of applying a revision.
type Outcome struct {
	// Digest is that of the objects that the revision is built to; empty if it could not be built.
	Digest string
	// Revision is that of the source, and Origin that of what its artifact was made from; empty for none.
	Revision, Origin string
	// Reason is that of the condition Ready.
	Reason string
	// Anew says that the Kustomization's spec has changed since the last outcome: its source may be another one.
	Anew bool
	// Commit is what is recorded of the commit.
	Commit     map[string]string
	Begun, Now time.Time
}

// Written records that a revision is written and that its outcome is not known yet. If the last outcome is of other
// objects, the next success counts as a change, even one that reverts to those. The first revision of all is added to
// the history as it is: what is recorded of it stands beside an outcome.
func Written(status *kustomizev1.KustomizationStatus, o Outcome) {
	last := status.History.Latest()
	if last == nil {
		Remember(status, o)
	} else if last.Digest != o.Digest {
		delete(last.Metadata, gitopsv1alpha1.ChangedKey)
	}
}

// standing are the metadata keys that an outcome holds on behalf of the Kustomization. They move to the next outcome.
var standing = []string{gitopsv1alpha1.AppliedKey, gitopsv1alpha1.AppliedCommitKey, gitopsv1alpha1.LeavingKey, gitopsv1alpha1.UndecidedKey, gitopsv1alpha1.RemovedKey, gitopsv1alpha1.TerminatingKey, gitopsv1alpha1.EditedKey, gitopsv1alpha1.PlaceKey}

// Remember adds an outcome to the history of a status, unless it equals the last one. A revision that could not be
// built adds none, but the next success after it counts as a change; so does one that cannot be built with a new spec.
func Remember(status *kustomizev1.KustomizationStatus, o Outcome) {
	last := status.History.Latest()
	if o.Digest == "" {
		if last != nil && (o.Anew || o.Revision != status.LastAppliedRevision) {
			delete(last.Metadata, gitopsv1alpha1.ChangedKey)
		}
		return
	}
	if last != nil && last.Digest == o.Digest && last.LastReconciledStatus == o.Reason && last.Metadata["revision"] == o.Revision {
		return
	}
	metadata := map[string]string{"revision": o.Revision, gitopsv1alpha1.ChangedKey: o.Revision}
	maps.Copy(metadata, o.Commit)
	if o.Origin != "" {
		metadata["originRevision"], metadata[gitopsv1alpha1.ChangedOriginKey] = o.Origin, o.Origin
	}
	for _, key := range standing {
		if last != nil && last.Metadata[key] != "" {
			metadata[key] = last.Metadata[key]
			delete(last.Metadata, key)
		}
	}
	if !o.Anew && last != nil && last.Digest == o.Digest && o.Reason == meta.ReconciliationSucceededReason && last.LastReconciledStatus == o.Reason {
		if since := last.Metadata[gitopsv1alpha1.ChangedKey]; since != "" {
			metadata[gitopsv1alpha1.ChangedKey] = since
			delete(metadata, gitopsv1alpha1.ChangedOriginKey)
			if origin := last.Metadata[gitopsv1alpha1.ChangedOriginKey]; origin != "" {
				metadata[gitopsv1alpha1.ChangedOriginKey] = origin
			}
		}
	}
	status.History.Upsert(o.Digest, o.Now, o.Now.Sub(o.Begun), o.Reason, metadata)
}
