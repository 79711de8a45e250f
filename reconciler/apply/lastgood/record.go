package lastgood

import (
	"encoding/json"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/provenance"
)

// Record identifies what a Kustomization applied last as a whole, whether it became healthy or not. If only a part was
// applied, Bytes alone is set. The zero value records nothing.
type Record struct {
	// Revision is the name of the revision, for people.
	Revision string
	// Artifact is the digest of the artifact that was built, and Objects that of the objects built from it.
	Artifact, Objects string
	// Bytes is the size of all objects together, as JSON; an upper bound if only a part of them was applied.
	Bytes int64
	// Commit is what the artifact said of its commit, by the keys of the API. An outcome may never be recorded of the
	// revision, or may be forgotten, while this one stands.
	Commit map[string]string
}

// Whole reports whether it is known what was applied.
func (r Record) Whole() bool { return r.Objects != "" && r.Artifact != "" && r.Revision != "" }

// Anew reports whether an artifact is another one than that from which the same revision was applied.
func Anew(status kustomizev1.KustomizationStatus, revision, artifact string) bool {
	before := In(status)
	return status.LastAppliedRevision == revision && before.Revision == revision && before.Artifact != artifact
}

// Verified reports whether the commit of a record has the signatures that its source asks for by now, as they were verified
// when it was applied.
func Verified(status kustomizev1.KustomizationStatus, r Record, asked provenance.Demand) bool {
	return asked == (provenance.Demand{}) || asked.Met(r.Commit) || slices.ContainsFunc(status.History, func(s meta.Snapshot) bool {
		return s.Metadata["revision"] == r.Revision && asked.Met(s.Metadata)
	})
}

// unknown is written in place of a field that is not known.
const unknown = "-"

// In returns the record in a status; the zero value if there is none, or it cannot be read.
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
	if text := latest.Metadata[gitopsv1alpha1.AppliedCommitKey]; text != "" && json.Unmarshal([]byte(text), &r.Commit) != nil {
		r.Commit = nil
	}
	return r
}

// Write writes the record into the latest outcome of a status; only the size if the rest is not known as a whole. A
// status without any outcome cannot hold a record.
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
		delete(outcome.Metadata, gitopsv1alpha1.AppliedCommitKey)
	}
	latest := status.History.Latest()
	if latest == nil || text == "" {
		return
	}
	if latest.Metadata == nil {
		latest.Metadata = map[string]string{}
	}
	latest.Metadata[gitopsv1alpha1.AppliedKey] = text
	if !r.Whole() || len(r.Commit) == 0 {
		return
	}
	if commit, err := json.Marshal(r.Commit); err == nil {
		latest.Metadata[gitopsv1alpha1.AppliedCommitKey] = string(commit)
	}
}
