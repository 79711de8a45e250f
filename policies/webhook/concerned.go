package webhook

import (
	"net/url"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// Concerns reports whether a repository may have changed by an event. It has not if refs of just that repository were
// pushed, and none of them is what it follows. A submodule, or another name of the repository, may change it by any.
func (e Event) Concerns(r *sourcev1.GitRepository) bool {
	if len(e.Refs) == 0 || e.Repository == "" || !strings.EqualFold(pathOf(r.Spec.URL), e.Repository) {
		return true
	}
	for _, ref := range e.Refs {
		if follows(r.Spec.Reference, ref) {
			return true
		}
	}
	return false
}

// pathOf returns the path of a repository on its host as forges call it: without ".git", and without what Bitbucket puts
// before it in addresses.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"), "scm/")
}

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)

// follows reports whether a repository with this reference may have changed if a ref has.
func follows(of *sourcev1.GitRepositoryRef, ref string) bool {
	switch {
	case of == nil:
		return ref == branches+"master"
	case of.Commit != "": // its branch is only where it is looked for
		return true
	case of.Name != "":
		return ref == of.Name || !strings.HasPrefix(of.Name, branches) && !strings.HasPrefix(of.Name, tags)
	case of.SemVer != "":
		return strings.HasPrefix(ref, tags)
	case of.Tag != "":
		return ref == tags+of.Tag
	case of.Branch != "":
		return ref == branches+of.Branch
	default:
		return ref == branches+"master"
	}
}
