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

// Add takes in changes and deletions, each once: an apply that waits for a kind or a namespace has planned
// what the next one does.
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

// String is such as "2 created: Deployment/shop/web, Service/shop/web; 1 deleted:
// ConfigMap/shop/old"; empty for nothing.
func (s *ChangeSet) String() string {
	var texts []string
	for _, action := range reported {
		if ids := s.byAction[action]; len(ids) > 0 {
			texts = append(texts, fmt.Sprintf("%d %s: %s", len(ids), action, inventory.First(ids, namedObjects)))
		}
	}
	return strings.Join(texts, "; ")
}

// Deeds are what runs did until a revision stood.
type Deeds struct {
	Revision string
	// Reported says that they were reported.
	Reported bool
	// Omitted says that it was reported what the revision has and is not applied.
	Omitted bool
	Changes ChangeSet
}

// Omits returns a text about what is omitted if it is to be reported: of a revision that was not applied before, once.
func (d *Deeds) Omits(text string, applied bool) string {
	if text == "" || applied || d.Omitted {
		return ""
	}
	d.Omitted = true
	return text
}

// Of returns the deeds for a revision: those that are not reported yet, or none.
func (d Deeds) Of(revision string) Deeds {
	if d.Reported || d.Revision != revision {
		return Deeds{Revision: revision}
	}
	return d
}
