package lastgood

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Record names what a Kustomization applied last, wholly: whether it became healthy is another matter. Of what
// was applied in part the size alone is known. The zero value names nothing.
type Record struct {
	// Revision is for people.
	Revision string
	// Artifact is the digest of what it was built from, Objects that of what it was built to.
	Artifact, Objects string
	// Bytes is how large the objects are together, as JSON; at most, where a part of them was applied.
	Bytes int64
}

// Whole reports whether it is known what was applied.
func (r Record) Whole() bool { return r.Objects != "" && r.Artifact != "" && r.Revision != "" }

// unknown stands for what is not known.
const unknown = "-"

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
	if r.Objects == unknown {
		return Record{Bytes: r.Bytes}
	}
	return r
}

// Write has the latest outcome of a status record what was applied; the size alone, where the rest is not all known. A
// status without any outcome records nothing.
func Write(status *kustomizev1.KustomizationStatus, r Record) {
	text := ""
	switch {
	case r.Whole():
		text = fmt.Sprintf("%s %s %s %d", r.Objects, r.Artifact, r.Revision, r.Bytes)
	case r.Bytes > 0:
		text = fmt.Sprintf("%[1]s %[1]s %[1]s %[2]d", unknown, r.Bytes)
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
