package origins

import (
	"regexp"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// packedKey is the metadata key under which an artifact names the revision that it was packed from.
const packedKey = "org.opencontainers.image.revision"

// Committed returns the revision, with its commit, of what a Kustomization knows as a revision of its source: the same where the
// source is a repository, and where it is not the one that the artifact was packed from, as it says itself. artifact is the
// source's; nil for none. Empty: the artifact says nothing, or it is not known any more.
func Committed(ks *kustomizev1.Kustomization, artifact *meta.Artifact, revision string) string {
	if inventory.SourceOf(ks).Kind != sourcev1.OCIRepositoryKind || revision == "" {
		return revision
	}
	status := &ks.Status
	if artifact != nil && artifact.Revision == revision {
		return typed(artifact.Metadata[packedKey])
	}
	if status.LastAppliedRevision == revision && status.LastAppliedOriginRevision != "" {
		return typed(status.LastAppliedOriginRevision)
	}
	for _, h := range status.History {
		if origin := h.Metadata["originRevision"]; h.Metadata["revision"] == revision && origin != "" {
			return typed(origin)
		}
	}
	if last := status.History.Latest(); last != nil && last.Metadata[gitopsv1alpha1.ChangedKey] == revision {
		return typed(last.Metadata[gitopsv1alpha1.ChangedOriginKey])
	}
	return ""
}

// Packed returns the revision that the artifact of a source was packed from, as it says; of a repository, its own. Empty: there is
// no artifact, or it says nothing.
func Packed(of Object) string {
	artifact := of.GetArtifact()
	switch {
	case artifact == nil:
		return ""
	case Of(of).Kind == sourcev1.GitRepositoryKind:
		return artifact.Revision
	default:
		return typed(artifact.Metadata[packedKey])
	}
}

var plain = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// typed returns a revision as Flux writes it, where it is nothing but a hash, as other tools write it.
func typed(revision string) string {
	switch {
	case !plain.MatchString(revision):
		return revision
	case len(revision) == 40:
		return "sha1:" + revision
	default:
		return "sha256:" + revision
	}
}
