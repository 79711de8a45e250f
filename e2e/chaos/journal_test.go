package chaos

import (
	"slices"
	"sync"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

// journal keeps what happens, in order.
type journal struct {
	mu sync.Mutex
	history.History
}

func (j *journal) wrote(w history.Write)          { keep(j, &j.Writes, w) }
func (j *journal) moved(m history.Move)           { keep(j, &j.Moves, m) }
func (j *journal) saw(s history.Observation)      { keep(j, &j.Observations, s) }
func (j *journal) observed(s history.Snapshot)    { keep(j, &j.Snapshots, s) }
func (j *journal) dividedInto(d history.Division) { keep(j, &j.Divisions, d) }
func (j *journal) away(a history.Absence)         { keep(j, &j.Absences, a) }
func (j *journal) requested(r history.Request)    { keep(j, &j.Requests, r) }

func keep[T any](j *journal, list *[]T, item T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	*list = append(*list, item)
}

// asked is what users have asked for until now, and which clusters were away.
func (j *journal) asked() history.History {
	j.mu.Lock()
	defer j.mu.Unlock()
	return history.History{Writes: slices.Clone(j.Writes), Moves: slices.Clone(j.Moves), Absences: slices.Clone(j.Absences)}
}
