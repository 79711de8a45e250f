// Package returns says when what others delete comes back.
//
// In go deletions of a Kustomization's objects, and times; out comes when the objects are to be applied
// again: at once the first time, and later each time that somebody deletes one again soon after, and what is
// not there until then. It has no clock, and keeps all in memory: a restart only forgets how often.
//
// It is no flowcontrol.Backoff of client-go: that has one longest wait for all time, where an interval is
// edited, no first time without a wait, counts an object as settled since it was deleted last and not since it
// came back, and does not say how often that was, nor what comes back first.
package returns

import (
	"fmt"
	"slices"
	"time"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// second is how long an object is waited with that is deleted a second time; each further time twice as long.
const second = 500 * time.Millisecond

// notable is how often an object is deleted in a row before that is reported.
const notable = 3

// brief is up to how long a wait is not reported while it lasts.
const brief = 3 * time.Second

// Returns are those of one Kustomization's objects. The zero value knows of no deletion. It is not safe for
// use by several goroutines.
type Returns struct {
	byObject map[inventory.ID]deletions
	often    []inventory.ID // since it was reported last
}

// deletions are those of an object in a row.
type deletions struct {
	count   int
	at      time.Time // of the last one
	back    time.Time // when the object comes back after that
	missing bool      // until then
}

// Deleted takes in that an object was deleted, and returns how long to wait with it, longest at most. One that
// stood for as long as the longest since it came back is waited with no more than at first.
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
	due := r.Due()
	if due.IsZero() || now.Before(due) {
		return false
	}
	r.Back(now)
	return true
}

// Back takes in that all was applied by a run that began at a time: what was deleted by then is there again.
func (r *Returns) Back(began time.Time) {
	for id, d := range r.byObject {
		if d.missing && !d.at.After(began) {
			d.missing = false
			r.byObject[id] = d
		}
	}
}

// Due returns when something is to come back, and all with it; zero for nothing.
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

// Missing says what is not there, as it was deleted again and again, and when it comes back; empty for nothing, or not
// for long. It is the same until that changes.
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

// Message says which objects have been deleted again and again since it was reported last; empty for none.
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
