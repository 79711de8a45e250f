package lastgood

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
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
	// Sources are those whose artifacts its objects come from, the one applied last first: another one follows where spec.sourceRef was
	// changed, and something is still kept of what the former one applied. Empty: not known.
	Sources []inventory.Source
}

// Followed returns the sources of the record after a revision of this one; owes says that something is kept of what was applied before.
func (r Record) Followed(source inventory.Source, owes bool) []inventory.Source {
	out := []inventory.Source{source}
	if !owes {
		return out
	}
	return append(out, slices.DeleteFunc(slices.Clone(r.Sources), func(s inventory.Source) bool { return s == source })...)
}

// Former returns the sources that a Kustomization does not follow any more, and whose artifacts some of its objects come from.
func Former(ks *kustomizev1.Kustomization) []inventory.Source {
	return slices.DeleteFunc(In(ks.Status).Sources, func(s inventory.Source) bool { return s == inventory.SourceOf(ks) })
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
	var sources string
	if read, _ := fmt.Sscan(latest.Metadata[gitopsv1alpha1.AppliedKey], &r.Objects, &r.Artifact, &r.Revision, &r.Bytes, &sources); read < 4 {
		return Record{}
	}
	r.Sources = parse(sources)
	if r.Objects == unknown {
		return Record{Bytes: r.Bytes, Sources: r.Sources}
	}
	if text := latest.Metadata[gitopsv1alpha1.AppliedCommitKey]; text != "" && json.Unmarshal([]byte(text), &r.Commit) != nil {
		r.Commit = nil
	}
	return r
}

// parse reads what text returns. It leaves out what it cannot read.
func parse(text string) []inventory.Source {
	var out []inventory.Source
	for word := range strings.SplitSeq(text, ",") {
		if parts := strings.Split(word, "/"); len(parts) == 3 {
			out = append(out, inventory.Source{Kind: parts[0], ObjectKey: client.ObjectKey{Namespace: parts[1], Name: parts[2]}})
		}
	}
	return out
}

func text(sources []inventory.Source) string {
	var words []string
	for _, s := range sources {
		words = append(words, s.Kind+"/"+s.ObjectKey.String())
	}
	return strings.Join(words, ",")
}

// Write writes the record into the latest outcome of a status; only size and sources if the rest is not known as a whole. A
// status without any outcome cannot hold a record.
func Write(status *kustomizev1.KustomizationStatus, r Record) {
	applied := ""
	switch {
	case r.Whole():
		applied = fmt.Sprintf("%s %s %s %d %s", r.Objects, r.Artifact, r.Revision, r.Bytes, text(r.Sources))
	case r.Bytes > 0 || len(r.Sources) > 0:
		applied = fmt.Sprintf("%[1]s %[1]s %[1]s %[2]d %[3]s", unknown, r.Bytes, text(r.Sources))
	}
	applied = strings.TrimSpace(applied)
	for _, outcome := range status.History {
		delete(outcome.Metadata, gitopsv1alpha1.AppliedKey)
		delete(outcome.Metadata, gitopsv1alpha1.AppliedCommitKey)
	}
	latest := status.History.Latest()
	if latest == nil || applied == "" {
		return
	}
	if latest.Metadata == nil {
		latest.Metadata = map[string]string{}
	}
	latest.Metadata[gitopsv1alpha1.AppliedKey] = applied
	if !r.Whole() || len(r.Commit) == 0 {
		return
	}
	if commit, err := json.Marshal(r.Commit); err == nil {
		latest.Metadata[gitopsv1alpha1.AppliedCommitKey] = string(commit)
	}
}
