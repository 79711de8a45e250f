// Package returns says when what others delete comes back.
//
// In go deletions of a Kustomization's objects, and times; out comes when the objects are to be applied
// again: at once the first time, and later each time that somebody deletes one again soon after. It has no
// clock, and keeps all in memory: a restart only forgets how often.
package returns

import (
	"fmt"
	"slices"
	"time"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// second is how long an object is waited with that is deleted a second time; each further time twice as long.
const second = 500 * time.Millisecond

// notable is how often an object is deleted in a row before that is told.
const notable = 3

// Returns are those of one Kustomization's objects. The zero value knows of no deletion. It is not safe for
// use by several goroutines.
type Returns struct {
	byObject map[inventory.ID]deletions
	due      time.Time
	often    []inventory.ID // since it was told last
}

// deletions are those of an object in a row.
type deletions struct {
	count int
	back  time.Time // when the object comes back after the last one
}

// Deleted takes in that an object was deleted, and returns how long to wait with it, longest at most. One that
// stood for as long as the longest since it came back is waited with no more than at first.
func (r *Returns) Deleted(id inventory.ID, now time.Time, longest time.Duration) time.Duration {
	for known, d := range r.byObject {
		if now.Sub(d.back) >= longest {
			delete(r.byObject, known)
		}
	}
	if r.byObject == nil {
		r.byObject = map[inventory.ID]deletions{}
	}
	before := r.byObject[id].count
	wait := min(pause(before), longest)
	r.byObject[id] = deletions{count: before + 1, back: now.Add(wait)}
	if before+1 >= notable && !slices.Contains(r.often, id) {
		r.often = append(r.often, id)
	}
	if r.due.IsZero() || r.byObject[id].back.Before(r.due) {
		r.due = r.byObject[id].back
	}
	return wait
}

// pause is the wait with an object that was deleted so many times before.
func pause(before int) time.Duration {
	if before == 0 {
		return 0
	}
	const enough = 20 // six days: longer than any interval counts
	return second << min(before-1, enough)
}

// Take reports whether something is to come back by now. If so, it counts as done.
func (r *Returns) Take(now time.Time) bool {
	if r.due.IsZero() || now.Before(r.due) {
		return false
	}
	r.due = time.Time{}
	return true
}

// Due returns when something is to come back; zero for nothing.
func (r *Returns) Due() time.Time { return r.due }

// Told says which objects have been deleted again and again since it was told last; empty for none.
func (r *Returns) Told() string {
	if len(r.often) == 0 {
		return ""
	}
	id := r.often[0]
	text := fmt.Sprintf("; %s was deleted %d times in a row, and comes back later each time: find out who deletes it", inventory.Describe(id), r.byObject[id].count)
	if more := len(r.often) - 1; more > 0 {
		text += fmt.Sprintf("; so were %d more", more)
	}
	r.often = nil
	return text
}
