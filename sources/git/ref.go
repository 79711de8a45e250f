package git

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// DefaultBranch is read if a Ref has no field set.
const DefaultBranch = "master"

// Ref selects a commit. If several fields are set, the later one in this list
// takes precedence: Branch, Tag, SemVer, Name, Commit.
type Ref struct {
	// Branch is a branch's short name; empty means DefaultBranch.
	Branch string
	// Tag is a tag's short name.
	Tag string
	// SemVer is a range of versions; the highest tag within it is read.
	SemVer string
	// Name is a full ref, such as refs/pull/420/head.
	Name string
	// Commit is a full commit hash. If Branch is set as well, the commit is taken
	// from that branch's history.
	Commit string
}

// Commit is the commit that a Ref resolved to.
type Commit struct {
	// Hash is the commit's, in lower-case hex.
	Hash string
	// Reference is the full name of the resolved ref; empty if only the hash was
	// given.
	Reference string
	// Tag is the hash of the annotated tag that Reference names; empty if it names none.
	Tag string
	// pointer is the name that the revision shows: the short name, unless Ref.Name
	// was set.
	pointer string
	// listed means that the remote has just said that Reference leads there.
	listed bool
}

// Revision returns the value of status.artifact.revision for the commit.
func (c Commit) Revision() Revision {
	return Revision{Pointer: c.pointer, Algorithm: "sha1", Checksum: c.Hash}
}

var commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// fixed returns the commit if the ref names one by its hash, which needs no
// remote, and whether it does.
func (r Ref) fixed() (Commit, bool, error) {
	if r.Commit == "" {
		return Commit{}, false, nil
	}
	if !commitHash.MatchString(r.Commit) {
		return Commit{}, false, fmt.Errorf("%w: commit %q must be 40 lower-case hex digits", ErrRef, r.Commit)
	}
	c := Commit{Hash: r.Commit}
	if r.Branch != "" {
		c.Reference, c.pointer = branchPrefix+r.Branch, r.Branch
	}
	return c, true, nil
}

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
)

// prefix returns what the full names of the refs begin with that find looks at.
func (r Ref) prefix() string {
	switch {
	case r.Name != "":
		return strings.TrimSuffix(r.Name, "^{}")
	case r.SemVer != "":
		return tagPrefix
	case r.Tag != "":
		return tagPrefix + r.Tag
	default:
		return branchPrefix + r.branch()
	}
}

func (r Ref) branch() string { return cmp.Or(r.Branch, DefaultBranch) }

// find returns the commit that the ref points at among the advertised ones.
func (r Ref) find(have wire.Refs) (Commit, error) {
	switch {
	case r.Name != "":
		// Some tools ask for an annotated tag's commit by its peeled name.
		name := strings.TrimSuffix(r.Name, "^{}")
		return commitAt(have, name, name, "ref "+r.Name)
	case r.SemVer != "":
		return r.highest(have)
	case r.Tag != "":
		return commitAt(have, tagPrefix+r.Tag, r.Tag, "tag "+r.Tag)
	default:
		return commitAt(have, branchPrefix+r.branch(), r.branch(), "branch "+r.branch())
	}
}

func commitAt(have wire.Refs, full, pointer, words string) (Commit, error) {
	at, ok := have.At[full]
	commit, peeled := have.Peeled[full]
	switch {
	case peeled && ok:
		return Commit{Hash: commit.String(), Reference: full, Tag: at.String(), pointer: pointer}, nil
	case peeled:
		return Commit{Hash: commit.String(), Reference: full, pointer: pointer}, nil
	case ok:
		return Commit{Hash: at.String(), Reference: full, pointer: pointer}, nil
	default:
		return Commit{}, fmt.Errorf("%s: %w", words, ErrRefNotFound)
	}
}

// maxHint is how many branches a message names.
const maxHint = 5

// hint says what to do about a ref that is not there. It lists existing branches,
// so that users notice a typing error.
func (r Ref) hint(branchesOf func() wire.Refs) string {
	if r.Name == "" && r.SemVer != "" {
		return "; no tag is within it, change spec.ref.semver or push a tag"
	}
	have := branchesOf()
	if have.At == nil { // they could not be read
		return "; change spec.ref or push it"
	}
	var branches []string
	for name := range have.At {
		if short, ok := strings.CutPrefix(name, branchPrefix); ok {
			branches = append(branches, remoteText(short))
		}
	}
	if len(branches) == 0 {
		return "; the repository has no branches: push one"
	}
	slices.Sort(branches)
	more := ""
	if len(branches) > maxHint {
		branches, more = branches[:maxHint], ", …"
	}
	return fmt.Sprintf("; change spec.ref or push it (branches: %s%s)", strings.Join(branches, ", "), more)
}

// highest returns the commit of the highest tag within the range.
func (r Ref) highest(have wire.Refs) (Commit, error) {
	constraint, err := semver.NewConstraint(r.SemVer)
	if err != nil {
		return Commit{}, fmt.Errorf("%w: semver range %q: %w", ErrRef, r.SemVer, err)
	}
	var best *semver.Version
	var bestTag string
	for name := range have.At {
		tag, ok := strings.CutPrefix(name, tagPrefix)
		if !ok {
			continue
		}
		v, err := semver.NewVersion(tag)
		if err != nil || !constraint.Check(v) {
			continue
		}
		// Equal versions (1.0.0 and v1.0.0) are ordered by name, so that the same
		// refs give the same result.
		if best == nil || v.GreaterThan(best) || (v.Equal(best) && tag > bestTag) {
			best, bestTag = v, tag
		}
	}
	if best == nil {
		return Commit{}, fmt.Errorf("semver range %s: %w", r.SemVer, ErrRefNotFound)
	}
	return commitAt(have, tagPrefix+bestTag, bestTag, "tag "+bestTag)
}
