// Package recreatebackoff decides when an object that somebody else deleted is created again.
//
// In go deletions of a Kustomization's objects, and times; out comes when the objects are to be applied
// again: at once the first time, and after twice as long each time that somebody soon deletes one again. Out comes
// also what is missing until then. It has no clock, and keeps all in memory: a restart only forgets the counts.
//
// It does not use flowcontrol.Backoff of client-go. That has a fixed maximum, while an interval can be
// edited; it has no first time without a wait; it resets by the time since the last deletion, not since the object
// was applied again; and it returns neither the count nor which object is next.
package recreatebackoff

import (
	"fmt"
	"slices"
	"time"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// second is the wait after an object was deleted a second time. It doubles each further time.
const second = 500 * time.Millisecond

// notable is how many deletions in a row are reported.
const notable = 3

// brief is the longest wait that is not reported while it lasts.
const brief = 3 * time.Second

// Returns holds the deletions of one Kustomization's objects. The zero value has none. It is not safe for
// use by several goroutines.
type Returns struct {
	byObject map[inventory.ID]deletions
	often    []inventory.ID // deleted again and again since that was reported last
}

// deletions are the deletions of one object in a row.
type deletions struct {
	count   int
	at      time.Time // of the last one
	back    time.Time // when the object is due to be applied again
	missing bool      // it has not been applied again yet
}

// Deleted records that an object was deleted, and returns how long to wait before it is applied again, longest at
// most. The count starts again for an object that was there for as long as longest since it was last applied.
func (r *Returns) Deleted(id inventory.ID, now time.Time, longest time.Duration) time.Duration {
	for known, d := range r.byObject {
		if (known == id || !d.missing) && now.Sub(d.back) >= longest {
			delete(r.byObject, known)
		}
	}
	if r.byObject == nil {
		r.byObject = map[inventory.ID]deletions{}
	}
	before := r.byObject[id].count
	wait := min(pause(before), longest)
	r.byObject[id] = deletions{count: before + 1, at: now, back: now.Add(wait), missing: true}
	if before+1 >= notable && !slices.Contains(r.often, id) {
		r.often = append(r.often, id)
	}
	return wait
}

// pause returns the wait for an object that was deleted so many times before.
func pause(before int) time.Duration {
	if before == 0 {
		return 0
	}
	const enough = 20 // about six days, longer than any useful interval; a bound, so that the shift cannot overflow
	return second << min(before-1, enough)
}

// Take reports whether an object is due to be applied again. If so, all count as applied again.
func (r *Returns) Take(now time.Time) bool {
	due := r.Due()
	if due.IsZero() || now.Before(due) {
		return false
	}
	r.Back(now)
	return true
}

// Back records that a run which began at that time has applied everything: what was deleted before it is there
// again.
func (r *Returns) Back(began time.Time) {
	for id, d := range r.byObject {
		if d.missing && !d.at.After(began) {
			d.missing = false
			r.byObject[id] = d
		}
	}
}

// Due returns when the first missing object is due; the run at that time applies all of them. It is zero for none.
func (r *Returns) Due() time.Time {
	var due time.Time
	for _, d := range r.byObject {
		if d.missing && (due.IsZero() || d.back.Before(due)) {
			due = d.back
		}
	}
	return due
}

// Long reports whether a wait is so long that it is reported while it lasts.
func Long(wait time.Duration) bool { return wait > brief }

// Missing returns a text about the objects that are missing, as they were deleted again and again, and about when they
// are applied again. It is empty if none is missing for long. The text does not change while it waits, so that the
// status need not be written.
func (r *Returns) Missing() string {
	var missing []inventory.ID
	for id, d := range r.byObject {
		if d.missing && Long(d.back.Sub(d.at)) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	inventory.SortIDs(missing)
	id := missing[0]
	text := fmt.Sprintf("%s is not there: it was deleted %d times in a row, and comes back at %s; find out who deletes it",
		inventory.Describe(id), r.byObject[id].count, r.Due().UTC().Format(time.RFC3339))
	return text + more(len(missing)-1)
}

// Message returns a text about the objects that were deleted again and again since the last call; empty for none.
func (r *Returns) Message() string {
	if len(r.often) == 0 {
		return ""
	}
	id := r.often[0]
	text := fmt.Sprintf("; %s was deleted %d times in a row, and comes back later each time: find out who deletes it", inventory.Describe(id), r.byObject[id].count)
	text += more(len(r.often) - 1)
	r.often = nil
	return text
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("; so were %d more", n)
}
