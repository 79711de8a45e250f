package kustomizations

import (
	"maps"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Outcome is what came of a revision.
type Outcome struct {
	// Digest is that of the objects that the revision is built to; empty where it could not be.
	Digest string
	// Revision of the source, and Origin, that of what an artifact was made from; empty for none.
	Revision, Origin string
	// Reason is that of the condition Ready.
	Reason string
	// Anew says that the Kustomization's spec is another one than the last time: its source may be, too.
	Anew bool
	// Commit is what is recorded of the commit.
	Commit     map[string]string
	Begun, Now time.Time
}

// Written says that a revision is written, of which it is not known what comes of it. If it is another one than
// the last outcome is of, the next success counts as a change, also one that takes it back.
func Written(status *kustomizev1.KustomizationStatus, digest string) {
	if last := status.History.Latest(); last != nil && last.Digest != digest {
		delete(last.Metadata, gitopsv1alpha1.ChangedKey)
	}
}

// standing are what an outcome records of the Kustomization and not of itself: the next one has it, too.
var standing = []string{gitopsv1alpha1.AppliedKey, gitopsv1alpha1.LeavingKey, gitopsv1alpha1.UndecidedKey, gitopsv1alpha1.RemovedKey, gitopsv1alpha1.TerminatingKey, gitopsv1alpha1.EditedKey}

// Remember adds an outcome to the history of a status, unless it has been the last one. What could not be
// built is none; but after it, the next success counts as a change.
func Remember(status *kustomizev1.KustomizationStatus, o Outcome) {
	last := status.History.Latest()
	if o.Digest == "" {
		if last != nil && o.Revision != status.LastAppliedRevision {
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
		metadata["originRevision"] = o.Origin
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
		}
	}
	status.History.Upsert(o.Digest, o.Now, o.Now.Sub(o.Begun), o.Reason, metadata)
}
