package oci

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/flotilla-io/flotilla/policies/pattern"
	"github.com/flotilla-io/flotilla/policies/unserved"
)

// scheme begins the URLs of repositories.
const scheme = "oci://"

// DefaultTag is read if a Ref has no field set.
const DefaultTag = "latest"

// Ref selects an artifact of a repository. If several fields are set, the later one in this list takes precedence: Tag,
// SemVer, Digest.
type Ref struct {
	// Tag is a tag; empty means DefaultTag.
	Tag string
	// SemVer is a range of versions; the highest tag within it is read.
	SemVer string
	// SemVerFilter is a regular expression that the tags of SemVer have to match; empty matches all.
	SemVerFilter string
	// Digest is that of a manifest, as "sha256:<hex>".
	Digest string
}

// Target is what a Ref resolved to.
type Target struct {
	// Tag is the tag; empty if only the digest was given.
	Tag string
	// Digest is that of the manifest.
	Digest string
}

// Revision returns the value of status.artifact.revision for the target.
func (t Target) Revision() string {
	if t.Tag == "" {
		return t.Digest
	}
	return t.Tag + "@" + t.Digest
}

// ParseRevision reads what Target.Revision returns.
func ParseRevision(revision string) (Target, error) {
	at := strings.LastIndexByte(revision, '@')
	t := Target{Tag: revision[:max(at, 0)], Digest: revision[at+1:]}
	if !digests.MatchString(t.Digest) || at == 0 || t.Tag != "" && !tags.MatchString(t.Tag) {
		return Target{}, fmt.Errorf("%w: %q is no revision", ErrRef, revision)
	}
	return t, nil
}

var (
	digests = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	names   = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	tags    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// Check returns an error for a Ref that nothing can have. It sends nothing. Errors: ErrRef.
func (r Ref) Check() error {
	switch {
	case r.Digest != "" && !digests.MatchString(r.Digest):
		return fmt.Errorf("%w: spec.ref.digest %q must be sha256: and 64 lower-case hex digits", ErrRef, r.Digest)
	case r.Digest != "":
		return nil
	case r.SemVer != "":
		_, err := r.versions()
		return err
	case r.Tag != "" && !tags.MatchString(r.Tag):
		return fmt.Errorf("%w: spec.ref.tag %q is no tag", ErrRef, r.Tag)
	default:
		return nil
	}
}

// versions are the tags that a range of versions allows.
type versions struct {
	within *semver.Constraints
	filter *regexp.Regexp
	// text is the range, for messages.
	text string
}

func (r Ref) versions() (versions, error) {
	within, err := semver.NewConstraint(r.SemVer)
	if err != nil {
		return versions{}, fmt.Errorf("%w: %s", ErrRef, unserved.Range(r.SemVer))
	}
	filter, err := pattern.Compile(r.SemVerFilter)
	if err != nil {
		return versions{}, fmt.Errorf("%w: spec.ref.semverFilter is %w", ErrRef, err)
	}
	return versions{within, filter, r.SemVer}, nil
}

// better returns the one of two tags that has the higher version within the range; "" for none.
func (v versions) better(best, tag string) string {
	if !tags.MatchString(tag) || !v.filter.MatchString(tag) {
		return best
	}
	version, err := semver.NewVersion(tag)
	if err != nil || !v.within.Check(version) {
		return best
	}
	if best == "" {
		return tag
	}
	order := version.Compare(semver.MustParse(best))
	if order > 0 || order == 0 && tag > best { // of equal ones always the same, whatever the order of the list
		return tag
	}
	return best
}

// repository returns the repository that a URL names.
func repository(url string) (name.Repository, error) {
	address, ours := strings.CutPrefix(url, scheme)
	if !ours {
		return name.Repository{}, fmt.Errorf("%w: spec.url must begin with %s", ErrURL, scheme)
	}
	if strings.ContainsAny(address, "?#") || strings.Contains(address, "@") && strings.Index(address, "@") < strings.LastIndexByte(address, '/') {
		return name.Repository{}, fmt.Errorf("%w: spec.url names a host and a repository, and nothing else: credentials belong into the Secret of spec.secretRef", ErrURL)
	}
	host, path, _ := strings.Cut(address, "/")
	if lower := strings.ToLower(path); lower != path && names.MatchString(lower) {
		return name.Repository{}, fmt.Errorf("%w: spec.url has upper-case letters, which no repository has: write %s%s/%s", ErrURL, scheme, host, lower)
	}
	repo, err := name.NewRepository(address)
	if err != nil || !names.MatchString(repo.RepositoryStr()) {
		return name.Repository{}, fmt.Errorf("%w: spec.url has to be %shost/repository, with neither a tag nor a digest, which belong into spec.ref", ErrURL, scheme)
	}
	return repo, nil
}

// ParseArtifact reads the address of an artifact, such as oci://ghcr.io/org/app:v1 or oci://ghcr.io/org/app@sha256:…, and returns
// the URL of its repository, and what it names there. Errors: ErrURL.
func ParseArtifact(address string) (url string, ref Ref, err error) {
	wants := func() error {
		return fmt.Errorf("%w %q: write %shost/repository:tag, or %shost/repository@sha256:digest", ErrURL, address, scheme, scheme)
	}
	rest, ours := strings.CutPrefix(address, scheme)
	if !ours || !strings.Contains(rest, "/") {
		return "", Ref{}, wants()
	}
	rest, digest, named := strings.Cut(rest, "@")
	if named && !digests.MatchString(digest) { // nor is a login shown that somebody put before the host
		return "", Ref{}, fmt.Errorf("%w: what stands behind @ is no digest: write %shost/repository@sha256: and 64 hex digits", ErrURL, scheme)
	}
	if at := strings.LastIndexByte(rest, ':'); at > strings.LastIndexByte(rest, '/') {
		if rest, ref.Tag = rest[:at], rest[at+1:]; !tags.MatchString(ref.Tag) {
			return "", Ref{}, wants()
		}
	}
	ref.Digest = digest
	if _, err := repository(scheme + rest); err != nil {
		return "", Ref{}, wants()
	}
	return scheme + rest, ref, nil
}

// CheckTag returns an error for a tag that there cannot be. Errors: ErrRef.
func CheckTag(tag string) error {
	if !tags.MatchString(tag) {
		return fmt.Errorf("%w: %q is no tag: it has letters, digits, and - . _ between them, 128 at most", ErrRef, tag)
	}
	return nil
}
