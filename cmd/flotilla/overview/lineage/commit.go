package lineage

import (
	"cmp"
	"fmt"
	"regexp"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// CommitOf returns the commit that is on the control plane, with the details that the Kustomization
// recorded, or the source if that is still at the same commit.
func CommitOf(ks *kustomizev1.Kustomization, source origins.Object) *Commit {
	revision := standing.Revision(ks)
	if revision == "" {
		return nil
	}
	var recorded map[string]string
	if record := lastgood.In(ks.Status); record.Revision == revision {
		recorded = record.Commit
	}
	if origins.Of(source).Kind != sourcev1.GitRepositoryKind {
		origin, signed := "", ""
		if revision == ks.Status.LastAppliedRevision {
			origin = ks.Status.LastAppliedOriginRevision
		}
		for _, h := range ks.Status.History {
			if h.Metadata["revision"] == revision && signed == "" {
				signed = provenance.Text(h.Metadata)
			}
		}
		return packed(source, revision, origin, cmp.Or(signed, provenance.Text(recorded)))
	}
	for _, h := range ks.Status.History {
		if h.Metadata["revision"] == revision && h.Metadata[gitopsv1alpha1.CommitSubjectKey]+h.Metadata[gitopsv1alpha1.CommitAuthorKey] != "" {
			return described(revision, h.Metadata)
		}
	}
	if recorded[gitopsv1alpha1.CommitSubjectKey]+recorded[gitopsv1alpha1.CommitAuthorKey] != "" {
		return described(revision, recorded)
	}
	return FetchedCommit(revision, source)
}

// FetchedCommit returns a commit with the details that the source records.
func FetchedCommit(revision string, source origins.Object) *Commit {
	a := source.GetArtifact()
	if origins.Of(source).Kind != sourcev1.GitRepositoryKind {
		origin, signed := "", ""
		if a != nil && a.Revision == revision {
			origin, signed = a.Metadata[originKey], provenance.Text(a.Metadata)
		}
		return packed(source, revision, origin, signed)
	}
	switch {
	case a == nil || a.Revision != revision:
		return &Commit{Revision: revision, Unknown: "author and subject are not recorded, and the source is at another commit: git show " + (Commit{Revision: revision}).Hash()}
	case a.Metadata[gitopsv1alpha1.CommitSubjectKey]+a.Metadata[gitopsv1alpha1.CommitAuthorKey] == "":
		return &Commit{Revision: revision, Unknown: "author and subject were not recorded when it was fetched: git show " + (Commit{Revision: revision}).Hash()}
	}
	return described(revision, a.Metadata)
}

// originKey is the key of an artifact's metadata that names the revision that it was packed from.
const originKey = "org.opencontainers.image.revision"

// commitHash is the hash of a commit, or the beginning of one.
var commitHash = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// packed returns the commit that an artifact was packed from, or the artifact itself where that is not known.
func packed(source origins.Object, revision, origin, signed string) *Commit {
	commit, artifact := &Commit{Revision: origin, Signed: signed}, &Commit{Revision: revision, Signed: signed, Artifact: true}
	switch {
	case origin != "" && commitHash.MatchString(commit.Hash()):
		commit.Unknown = "so says the artifact, of which author and subject are not known: git show " + commit.Hash()
		return commit
	case origin != "":
		artifact.Unknown = fmt.Sprintf("it was packed from %q, so says the artifact, which is no commit", excerpt.Line(origin))
	case origins.Of(source).Kind == sourcev1.OCIRepositoryKind:
		artifact.Unknown = "the artifact does not say of which commit it was packed: flux push artifact --revision does"
	}
	return artifact
}

// lines returns what is told of a commit, or an artifact; nothing of none.
func (c *Commit) lines() []line {
	if c == nil {
		return nil
	}
	told := c.Unknown
	if told == "" && !c.Artifact {
		told = fmt.Sprintf("%q by %s, %s", c.Subject, orNobody(c.Author), c.Date)
	}
	out := []line{{c.word(), c.Revision}}
	if told == "" {
		told = c.Signed
	} else {
		told += after("; ", c.Signed)
	}
	if told != "" {
		out = append(out, line{"", told})
	}
	return out
}

// word is what the revision is.
func (c *Commit) word() string {
	if c != nil && c.Artifact {
		return "revision"
	}
	return "commit"
}

func described(revision string, metadata map[string]string) *Commit {
	return &Commit{
		Revision: revision, Author: metadata[gitopsv1alpha1.CommitAuthorKey],
		Subject: metadata[gitopsv1alpha1.CommitSubjectKey], Date: metadata[gitopsv1alpha1.CommitDateKey], Signed: provenance.Text(metadata),
	}
}
