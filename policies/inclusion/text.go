package inclusion

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// artifact is one that another one includes.
type artifact struct {
	name string // of its GitRepository
	*meta.Artifact
}

// includedIn returns what the artifact of a GitRepository includes of others, each name once.
func includedIn(r *sourcev1.GitRepository) []artifact {
	var out []artifact
	for n, include := range r.Status.ObservedInclude {
		name := include.GitRepositoryRef.Name
		known := slices.ContainsFunc(out, func(h artifact) bool { return h.name == name })
		if n < len(r.Status.IncludedArtifacts) && r.Status.IncludedArtifacts[n] != nil && !known {
			out = append(out, artifact{name, r.Status.IncludedArtifacts[n]})
		}
	}
	return out
}

// Text names what the artifact of a GitRepository holds of others, such as "base main@sha1:9f2c11d0"; empty for nothing.
func Text(r *sourcev1.GitRepository) string {
	var out []string
	for _, h := range includedIn(r) {
		out = append(out, h.name+" "+excerpt.ShortRevision(h.Revision))
	}
	return strings.Join(out, ", ")
}

// Changed says what the artifact of a GitRepository holds of others that it did not before, such as "the included base
// is at main@sha1:9f2c11d0 'two replicas'"; empty for nothing.
func Changed(before, after *sourcev1.GitRepository) string {
	old, text := includedIn(before), ""
	for _, h := range includedIn(after) {
		if slices.ContainsFunc(old, func(o artifact) bool { return o.name == h.name && o.Digest == h.Digest }) {
			continue
		}
		if text == "" {
			text = "the included " + h.name + " is at "
		} else {
			text += ", and " + h.name + " at "
		}
		text += excerpt.ShortRevision(h.Revision)
		if subject := h.Metadata[gitopsv1alpha1.CommitSubjectKey]; subject != "" {
			text += " '" + subject + "'"
		}
	}
	return text
}
