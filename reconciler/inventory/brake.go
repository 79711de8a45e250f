package inventory

import (
	"fmt"
	"slices"
	"strings"
)

// Brake says how much of an inventory one revision may remove.
type Brake struct {
	// Share is the part of the inventory that may go, from 0 to 1. More is
	// refused if it is also more than Count.
	Share float64
	// Count is the number of objects that may always go, unless they are all
	// there is.
	Count int
}

// DefaultBrake refuses a revision that removes more than a fifth of the
// inventory and more than five objects, or everything.
func DefaultBrake() Brake { return Brake{Share: 0.2, Count: 5} }

// Refusal is the brake's answer: why nothing was removed.
type Refusal struct {
	// Total is how many objects are owned.
	Total int
	// Removed are those that the revision lacks, sorted.
	Removed []ID
	// Revision is the one that was refused.
	Revision string
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("revision %s would remove %d of %d objects (%s): nothing was applied; commit them again, or allow it with the annotation %s: %q",
		e.Revision, len(e.Removed), e.Total, First(e.Removed, namedInRefusal), AllowPruneAnnotation, e.Revision)
}

// AllowPruneAnnotation on a Kustomization lifts the brake: for one revision if
// it names it, for all while it is "true".
const AllowPruneAnnotation = "kustomize.flotilla.io/allow-prune"

const (
	namedInRefusal = 3
	// shortest abbreviation of a commit that names a revision.
	shortestCommit = 7
)

// Check returns a *Refusal if removing these objects from an inventory of
// total objects needs to be allowed by a person. Equal entries in removed
// count once each; removed must be what would truly be deleted.
func (b Brake) Check(total int, removed []ID, revision string) error {
	gone := len(removed)
	everything := gone > 0 && gone >= total
	tooMany := gone > b.Count && float64(gone) > b.Share*float64(total)
	if !everything && !tooMany {
		return nil
	}
	ids := slices.Clone(removed)
	slices.SortFunc(ids, compareIDs)
	return &Refusal{Total: total, Removed: ids, Revision: revision}
}

// Allowed reports whether the annotation's value lifts the brake for a
// revision such as "main@sha1:9f2c…": "true", the revision itself, or its
// commit, in full or from seven characters on.
func Allowed(annotation, revision string) bool {
	switch annotation {
	case "":
		return false
	case "true", revision:
		return true
	}
	commit := revision[strings.LastIndexAny(revision, ":@")+1:]
	return len(annotation) >= shortestCommit && strings.HasPrefix(commit, annotation)
}

// First names up to n objects in words, and says how many more there are.
func First(ids []ID, n int) string {
	var names []string
	for _, id := range ids[:min(n, len(ids))] {
		names = append(names, Describe(id))
	}
	text := strings.Join(names, ", ")
	if more := len(ids) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
