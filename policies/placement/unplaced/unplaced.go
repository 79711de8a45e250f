// Package unplaced says that a template should be moved off clusters and has no place to go to.
//
// In go the clusters that it should leave, with the causes, and what stands in the way; out comes what a decision records of that, in
// words and as causes to compare by. It finds no place.
package unplaced

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement/unfit"
)

// Stays is where a template stays, and why. Nil: nowhere against what is asked for.
type Stays struct {
	// Message for users.
	Message string `json:"message"`
	// Cause distinguishes causes that differ in more than numbers.
	Cause string `json:"cause,omitempty"`
	// Clusters are those that it should leave, sorted.
	Clusters []string `json:"clusters,omitempty"`
	// Of identifies what it should leave, and why; not why there is no other place.
	Of string `json:"of,omitempty"`
}

// In says that a template stays in clusters that it should be moved off, and why; nil for none.
func In(clusters []string, why failover.Due, err error) *Stays {
	if len(clusters) == 0 {
		return nil
	}
	texts := make([]string, len(clusters))
	for i, name := range clusters {
		texts[i] = name + " (" + why[name].Why + ")"
	}
	out := &Stays{
		Clusters: slices.Sorted(slices.Values(clusters)), Of: unfit.CauseOf(texts),
		Message: fmt.Sprintf("It stays in %s: no other place: %s", strings.Join(texts, ", "), err),
	}
	var caused interface{ Cause() string }
	if errors.As(err, &caused) {
		out.Cause = unfit.CauseOf(append(texts, caused.Cause()))
	}
	return out
}

// With returns this with what stays because its state cannot be handed over. It is compared by its clusters: its text may change with
// each report.
func (s *Stays) With(w failover.Withheld) *Stays {
	if len(w.Clusters) == 0 {
		return s
	}
	var had Stays
	if s != nil {
		had = *s
	}
	return &Stays{
		Message: strings.TrimSpace(had.Message + " " + w.Why), Cause: had.Cause + " state in " + strings.Join(w.Clusters, ","),
		Of:       had.Of + " state in " + strings.Join(w.Clusters, ","),
		Clusters: slices.Sorted(slices.Values(slices.Concat(had.Clusters, w.Clusters))),
	}
}

// Identity is what is to be reported; empty for nil.
func (s *Stays) Identity() string {
	if s == nil {
		return ""
	}
	return s.Of
}

// Equal reports whether the two mean the same to a user.
func (s *Stays) Equal(other *Stays) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.Cause == other.Cause && (s.Cause != "" || s.Message == other.Message)
}
