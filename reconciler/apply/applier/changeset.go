package applier

import (
	"fmt"
	"strings"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// reported are the actions that a ChangeSet counts, in this order.
var reported = []Action{Created, Configured, Recreated, Deleted}

// namedObjects is how many objects of an action a text names.
const namedObjects = 3

// ChangeSet is what was done to objects, by one apply or several. The zero value is nothing.
type ChangeSet struct{ byAction map[Action][]inventory.ID }

// Add adds changes and deletions, each object once per action: an apply that waits for a kind or a namespace
// ends early, and the next one plans the same changes again.
func (s *ChangeSet) Add(changes []Change, deleted []inventory.ID) {
	done := map[Action][]inventory.ID{Deleted: deleted}
	for _, c := range changes {
		done[c.Action] = append(done[c.Action], inventory.IDOf(c.Desired))
	}
	if s.byAction == nil {
		s.byAction = map[Action][]inventory.ID{}
	}
	for _, action := range reported {
		known := map[inventory.ID]bool{}
		for _, id := range s.byAction[action] {
			known[id] = true
		}
		for _, id := range done[action] {
			if !known[id] {
				s.byAction[action] = append(s.byAction[action], id)
			}
		}
	}
}

// String returns a text such as "2 created: Deployment/shop/web, Service/shop/web; 1 deleted:
// ConfigMap/shop/old". It is empty for no changes.
func (s *ChangeSet) String() string {
	var texts []string
	for _, action := range reported {
		if ids := s.byAction[action]; len(ids) > 0 {
			texts = append(texts, fmt.Sprintf("%d %s: %s", len(ids), action, inventory.First(ids, namedObjects)))
		}
	}
	return strings.Join(texts, "; ")
}

// RevisionChanges are the changes that the runs for one revision made until all of it was applied.
type RevisionChanges struct {
	Revision string
	// Reported says that an event reported the changes.
	Reported bool
	// Omitted says that an event reported which parts of the revision are not applied.
	Omitted bool
	// Anew says that they are for another artifact of a revision that was applied before.
	Anew    bool
	Changes ChangeSet
}

const (
	// ReasonDriftCorrected is the reason of the event about objects that were brought back to their revision.
	ReasonDriftCorrected = "DriftCorrected"
	// ReasonOmitted is the reason of the event about what of a revision is not applied, such as owner references.
	ReasonOmitted = "FieldsOmitted"
)

// Omits returns the text about what is omitted if it is to be reported, and else nothing: it is reported once, and
// only for a revision that was not applied before.
func (d *RevisionChanges) Omits(text string, applied bool) string {
	if text == "" || applied || d.Omitted {
		return ""
	}
	d.Omitted = true
	return text
}

// Of returns the deeds to go on with for a revision: these if they are of that revision and not yet
// reported, and else new ones.
func (d RevisionChanges) Of(revision string) RevisionChanges {
	if d.Reported || d.Revision != revision {
		return RevisionChanges{Revision: revision}
	}
	return d
}
