package inclusion

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/provenance"
)

// Ring returns the names by which a GitRepository includes itself, the first and
// the last of which are its own; nil if it does not. includes returns what one of
// its namespace includes. The shortest ring is returned.
func Ring(name string, includes func(name string) []string) []string {
	type step struct {
		name string
		from int // which step led here
	}
	steps := []step{{name, -1}}
	seen := map[string]bool{}
	for at := 0; at < len(steps); at++ {
		for _, next := range includes(steps[at].name) {
			if next == name {
				ring := []string{name}
				for i := at; i >= 0; i = steps[i].from {
					ring = append(ring, steps[i].name)
				}
				slices.Reverse(ring)
				return ring
			}
			if !seen[next] {
				seen[next] = true
				steps = append(steps, step{next, at})
			}
		}
	}
	return nil
}

// RingText returns what is said about a ring.
func RingText(ring []string) string {
	var links []string
	for i := range len(ring) - 1 {
		links = append(links, ring[i]+" includes "+ring[i+1])
	}
	return strings.Join(links, ", ") + ": take one of them out of spec.include"
}

// Names returns what a GitRepository includes, by name.
func Names(r *sourcev1.GitRepository) []string {
	var out []string
	for _, include := range r.Spec.Include {
		out = append(out, include.GitRepositoryRef.Name)
	}
	return out
}

// Path returns a path of spec.include as one from the root of a tree; "." is the
// root.
func Path(given string) (string, error) {
	clean := path.Clean(strings.Trim(given, "/"))
	if !fs.ValidPath(clean) || slices.Contains(strings.Split(given, "/"), "..") || strings.ContainsAny(given, "\\\x00") {
		return "", fmt.Errorf("%q leads out of the repository: give a path within it", given)
	}
	return clean, nil
}

// Same reports whether the artifact of a GitRepository was made with these
// included artifacts, at the places that the spec names.
func Same(r *sourcev1.GitRepository, included []*meta.Artifact) bool {
	return slices.Equal(r.Spec.Include, r.Status.ObservedInclude) &&
		slices.EqualFunc(included, r.Status.IncludedArtifacts, func(a, b *meta.Artifact) bool { return b != nil && a.Digest == b.Digest })
}

// Concerns reports whether a change of a GitRepository concerns those that
// include it: it has another artifact, may be built or not, or includes something
// else, which may close or open a ring.
func Concerns(before, after *sourcev1.GitRepository) bool {
	old, now := before.Status.Artifact, after.Status.Artifact
	switch {
	case (old == nil) != (now == nil):
		return true
	case old != nil && (old.Digest != now.Digest || old.Revision != now.Revision):
		return true
	default:
		return provenance.Unverified(before) != provenance.Unverified(after) || !slices.Equal(Names(before), Names(after))
	}
}
