package lastgood

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Record names what a Kustomization applied last, wholly: whether it became healthy is another matter. The
// zero value names nothing.
type Record struct {
	// Revision is for people.
	Revision string
	// Artifact is the digest of what it was built from, Objects that of what it was built to.
	Artifact, Objects string
	// Bytes is how large the objects are together, as JSON.
	Bytes int64
}

// In returns what a status records; the zero value if that is nothing, or cannot be read.
func In(status kustomizev1.KustomizationStatus) Record {
	latest := status.History.Latest()
	if latest == nil {
		return Record{}
	}
	var r Record
	if _, err := fmt.Sscan(latest.Metadata[gitopsv1alpha1.AppliedKey], &r.Objects, &r.Artifact, &r.Revision, &r.Bytes); err != nil {
		return Record{}
	}
	return r
}

// Write has the latest outcome of a status record what was applied, or nothing, where a part of that is not known. A status
// without any outcome records nothing.
func Write(status *kustomizev1.KustomizationStatus, r Record) {
	text := ""
	if r.Objects != "" && r.Artifact != "" && r.Revision != "" {
		text = fmt.Sprintf("%s %s %s %d", r.Objects, r.Artifact, r.Revision, r.Bytes)
	}
	for _, outcome := range status.History {
		delete(outcome.Metadata, gitopsv1alpha1.AppliedKey)
	}
	latest := status.History.Latest()
	if latest == nil || text == "" {
		return
	}
	if latest.Metadata == nil {
		latest.Metadata = map[string]string{}
	}
	latest.Metadata[gitopsv1alpha1.AppliedKey] = text
}
