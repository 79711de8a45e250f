package history

import (
	"fmt"
	"slices"
	"time"
)

// fenced checks I5: each epoch is that of one replica, and once a write of a later
// epoch was accepted none of an earlier one is. Revisions give the order where answers
// have them, and times elsewhere.
func (j *judge) fenced() []string {
	var out []string
	of := map[int64]string{}       // whose an epoch is
	taken := map[int64]bool{}      // revisions that a write has made
	since := map[int64]time.Time{} // when the first write of an epoch was answered
	var epochs []int64
	for _, r := range j.Requests {
		if r.Epoch == 0 {
			out = append(out, fmt.Sprintf("%s wrote without an epoch: %s", r.By, r.What))
			continue
		}
		if whose, known := of[r.Epoch]; known && whose != r.By {
			out = append(out, fmt.Sprintf("%s and %s both wrote in epoch %d: %s", whose, r.By, r.Epoch, r.What))
		}
		if _, known := of[r.Epoch]; !known {
			of[r.Epoch] = r.By
			epochs = append(epochs, r.Epoch)
		}
		if first, known := since[r.Epoch]; !known || r.Ended.Before(first) {
			since[r.Epoch] = r.Ended
		}
	}
	slices.Sort(epochs)
	for _, r := range j.Requests {
		again := taken[r.Revision]
		if r.Revision != 0 {
			taken[r.Revision] = true
		}
		at, _ := slices.BinarySearch(epochs, r.Epoch+1)
		if r.Epoch == 0 || at == len(epochs) {
			continue
		}
		next := epochs[at]
		byRevision := r.Revision > next && !again // what another one has made was not changed
		if byRevision || r.Begun.After(since[next]) {
			out = append(out, fmt.Sprintf("%s wrote in epoch %d, which had ended with %d: %s", r.By, r.Epoch, next, r.What))
		}
	}
	return out
}
