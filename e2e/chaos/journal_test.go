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
func (j *journal) saw(s history.Sight)            { keep(j, &j.Sights, s) }
func (j *journal) looked(s history.Snapshot)      { keep(j, &j.Snapshots, s) }
func (j *journal) dividedInto(d history.Division) { keep(j, &j.Divisions, d) }
func (j *journal) requested(r history.Request)    { keep(j, &j.Requests, r) }

func keep[T any](j *journal, list *[]T, item T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	*list = append(*list, item)
}

// asked are the writes and moves until now.
func (j *journal) asked() ([]history.Write, []history.Move) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.Writes), slices.Clone(j.Moves)
}
