package situation

import (
	"fmt"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// CommitStatus adds a CommitStatus.
func (s *Survey) CommitStatus(cs *gitopsv1alpha1.CommitStatus) { s.asides.unposted.Add(cs) }

// unpostedNotes returns one note for each Provider that cannot post, and reason.
func (a *asides) unpostedNotes() []Note {
	var out []Note
	for cause, n := range a.unposted.Causes {
		out = append(out, Note{
			Kind: notificationv1beta3.ProviderKind, Namespace: cause.Namespace, Name: cause.Provider,
			Message: fmt.Sprintf("its forge is not told what came of commits (%d %s): %s: %s", n, plural(n, "status", "statuses"), cause.Reason, excerpt.Line(cause.Message)),
			Next:    "mend what it says; it is tried again by itself: flotilla get commitstatuses" + wording.InNamespace(cause.Namespace),
		})
	}
	return out
}
