// Package lineage decides about commits that do not follow the one that a
// repository was at before: a history that was rewritten, or moved back.
//
// In go how two commits stand to each other, and GitRepositories; out come what is
// said of it, and which revision is held back. It reads no repository.
package lineage

import (
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/pkg/apis/meta"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Relation is how a commit stands to an earlier one.
type Relation int

const (
	// Unknown is for what cannot be found out.
	Unknown Relation = iota
	// Ahead is for a commit that has the earlier one in its history.
	Ahead
	// Behind is for one that is in the history of the earlier one.
	Behind
	// Aside is for neither.
	Aside
	// Beside is for a higher version than the earlier one, of a history that does not have that: a release that was made on
	// a branch of its own looks so, and so does one of somebody who rewrote the history.
	Beside
)

// Reasons of conditions and Events.
const (
	// ReasonRewritten means that a commit does not follow the one before.
	ReasonRewritten = "HistoryRewritten"
	// ReasonUnknown means that it is not known whether it does.
	ReasonUnknown = "HistoryUnknown"
)

// Reason returns the reason for a Relation; empty for Ahead.
func (r Relation) Reason() string {
	switch r {
	case Ahead:
		return ""
	case Unknown:
		return ReasonUnknown
	default:
		return ReasonRewritten
	}
}

// How texts begin about what goes back, or rewrites what was.
const (
	movedBack = "the history was moved back, and does not contain "
	rewrites  = "the history was rewritten, and does not contain "
)

// Rewrites reports whether a Text is about what goes back, or rewrites what was.
func Rewrites(text string) bool {
	return strings.HasPrefix(text, movedBack) || strings.HasPrefix(text, rewrites)
}

// Text returns what is said of a commit that stands so to a revision; empty for
// Ahead.
func (r Relation) Text(before string) string {
	switch r {
	case Ahead:
		return ""
	case Behind:
		return movedBack + before
	case Aside:
		return rewrites + before
	case Beside:
		return "it is a higher version, of a history that does not contain " + before
	default:
		return "it is not known whether its history contains " + before
	}
}

// Warns reports whether the relation is worth a Warning: it goes back, or rewrites what was.
func (r Relation) Warns() bool { return r == Behind || r == Aside }

// Holds reports whether a repository keeps its artifact rather than take a commit
// that is not known to follow.
func Holds(r *sourcev1.GitRepository) bool {
	return HoldsIn(r.Annotations)
}

// HoldsIn is Holds by the annotations of a source.
func HoldsIn(annotations map[string]string) bool {
	return annotations[gitopsv1alpha1.RollbackProtectionAnnotation] == gitopsv1alpha1.RollbackProtectionHold
}

// Refused is a revision that is not taken, as it is not known to follow.
type Refused struct {
	// Revision is the revision, in full; empty for none.
	Revision string
	// Why says why, in one line.
	Why string
}

// separator separates the two in a message.
const separator = " is held back: "

// Message returns the text of the condition about it; RefusedBy reads it.
func (h Refused) Message() string { return h.Revision + separator + h.Why }

// RefusedBy returns the revision that a repository does not take; zero for none.
func RefusedBy(r *sourcev1.GitRepository) Refused {
	c := apimeta.FindStatusCondition(r.Status.Conditions, meta.ReadyCondition)
	if c == nil || c.Reason != ReasonRewritten && c.Reason != ReasonUnknown {
		return Refused{}
	}
	revision, why, found := strings.Cut(c.Message, separator)
	if !found || strings.ContainsAny(revision, " \n") {
		return Refused{}
	}
	return Refused{revision, why}
}
