package health

import (
	"slices"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Complaint is the last text about objects of a revision that are not healthy. The zero value is none. It is not safe
// for use by several goroutines.
type Complaint struct {
	about    []inventory.ID
	in, text string
}

// Text returns the text about unhealthy objects. If moves says that it contains numbers which change by themselves, it
// is the last text as long as that is about the same objects of the same revision, so that the status is not written at
// each change.
func (c *Complaint) Text(revision string, about []inventory.ID, text string, moves bool) string {
	if !moves {
		c.about = nil
		return text
	}
	if c.in != revision || !slices.Equal(c.about, about) {
		*c = Complaint{about, revision, text}
	}
	return c.text
}
