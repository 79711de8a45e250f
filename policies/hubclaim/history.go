package hubclaim

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// A hub whose store was restored from an older backup knows less than its members. Each
// member carries a mark, the highest store revision that it has seen; the store records each
// run of the loops that wrote marks. A mark of a run that the store does not have, or
// of a revision beyond the end of one, is from writes that the restore has lost.

// Mark is the highest revision of its hub's store that a member has seen.
type Mark struct {
	// Run is the Number, and ID the identity, of the run of the hub that wrote it.
	Run int    `json:"run"`
	ID  string `json:"id"`
	// Revision is the store's highest revision that concerned the member.
	Revision int64 `json:"revision"`
}

// Before reports whether a member that carries m now was restored since it carried then; nil
// is no mark. A mark of a later run may have a smaller revision: the hub was restored
// itself.
func (m *Mark) Before(then *Mark) bool {
	switch {
	case then == nil:
		return false
	case m == nil:
		return true
	default:
		return m.Run < then.Run || m.ID == then.ID && m.Revision < then.Revision
	}
}

// Run is one run of the hub's loops.
type Run struct {
	// Number counts runs from 1.
	Number int `json:"number"`
	// ID is random: a number may be given twice, once before a backup is restored
	// and once after.
	ID string `json:"id"`
	// Began is the revision of the store when it began; 0 while the run is being
	// written down for agents, see DelaysBegin.
	Began int64 `json:"began"`
}

// Copy is the state of an agent's copy on disk of the hub's objects. The zero
// value is a copy without a record of it.
type Copy struct {
	// Mark is the mark that was to be written to the member, Before the one that it carried then;
	// nil for none.
	Mark   *Mark `json:"mark,omitempty"`
	Before *Mark `json:"before,omitempty"`
}

// ParseCopy reads a copy; the zero value if text is empty or none.
func ParseCopy(text string) Copy {
	var c Copy
	if json.Unmarshal([]byte(text), &c) != nil {
		return Copy{}
	}
	return c
}

// Encode returns the copy as ParseCopy reads it.
func (c Copy) Encode() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(data)
}

// Older reports whether a copy may be older than what the member has seen. Runs are not
// compared by their numbers: a restored store gives numbers again. For a member
// without a mark the copy is older if the member carried one when it was made: the member was
// released meanwhile, and claimed again.
func (c Copy) Older(m *Mark) bool {
	if m == nil {
		return c.Before != nil
	}
	covers := func(have *Mark) bool { return have != nil && have.ID == m.ID && have.Revision >= m.Revision }
	return !covers(c.Mark) && !covers(c.Before)
}

// Report is an agent's report of the mark that its member carries.
type Report struct {
	Mark
	// Behind says that the agent has found the hub to be behind the mark.
	Behind bool `json:"behind,omitempty"`
}

// mostID is the longest ID of a run, in bytes.
const mostID = 64

// ParseReport reads an agent's report; ok is false if text is empty, or no report.
func ParseReport(text string) (r Report, ok bool) {
	if json.Unmarshal([]byte(text), &r) != nil || r.ID == "" || len(r.ID) > mostID || r.Run < 1 || r.Revision < 1 {
		return Report{}, false
	}
	return r, true
}

// Encode returns the report as ParseReport reads it.
func (r Report) Encode() string {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and truth always encode
	}
	return string(data)
}

// Hold records that the hub was found to be behind its members, and waits.
type Hold struct {
	// Since is when that was first found.
	Since time.Time `json:"since"`
	// Clusters are those that have seen more, in the order in which that was found.
	Clusters []string `json:"clusters"`
	// Store is the revision of the hub's store then, Seen the highest one that a
	// member has seen.
	Store int64 `json:"store"`
	Seen  int64 `json:"seen"`
	// Lost are the runs that wrote the marks.
	Lost []Lost `json:"lost"`
}

// Lost is a run of which writes were lost.
type Lost struct {
	ID string `json:"id"`
	// Revision is the highest of its marks that was found; 0 for all, as it was once
	// written.
	Revision int64 `json:"revision"`
}

// UnmarshalJSON implements json.Unmarshaler: it also reads an ID alone.
func (l *Lost) UnmarshalJSON(data []byte) error {
	if id := ""; json.Unmarshal(data, &id) == nil {
		*l = Lost{ID: id}
		return nil
	}
	type plain Lost
	return json.Unmarshal(data, (*plain)(l))
}

// covers reports whether a mark is one of those that were found.
func covers(lost []Lost, m *Mark) bool {
	return slices.ContainsFunc(lost, func(l Lost) bool { return l.ID == m.ID && (l.Revision == 0 || m.Revision <= l.Revision) })
}

// extended returns the runs with one more mark of one of them. At most mostForgiven are
// kept.
func extended(lost []Lost, m Lost) []Lost {
	lost = slices.Clone(lost)
	at := slices.IndexFunc(lost, func(l Lost) bool { return l.ID == m.ID })
	switch {
	case at < 0:
		lost = append(lost, m)
	case lost[at].Revision > 0 && (m.Revision == 0 || m.Revision > lost[at].Revision):
		lost[at] = m
	}
	return lost[max(0, len(lost)-mostForgiven):]
}

// corroborated is how many clusters have to report that the hub is behind for all to
// wait: a single report may be forged.
const corroborated = 2

// Covers reports whether the loss that a mark shows is among those found.
func (h *Hold) Covers(m *Mark) bool { return h != nil && covers(h.Lost, m) }

// Grows reports whether a mark shows a greater loss of a run that is already in the hold.
func (h *Hold) Grows(m *Mark) bool {
	return !h.Covers(m) && slices.ContainsFunc(h.Lost, func(l Lost) bool { return l.ID == m.ID })
}

// Whole reports whether all clusters wait, and not only those that have seen more.
func (h *Hold) Whole() bool { return len(h.Clusters) >= corroborated }

// Of returns the hold as far as it is about a cluster: nil if that one does not wait.
// A cluster's report holds that cluster itself: whatever the hub lost that concerned it, it has
// seen itself.
func (h *Hold) Of(cluster string) *Hold {
	if h == nil || !h.Whole() && !slices.Contains(h.Clusters, cluster) {
		return nil
	}
	return h
}

// mostNamed is how many clusters a message names.
const mostNamed = 5

// Describe explains the hold and what to do, for people.
func (h *Hold) Describe() string {
	return h.Found() + ": flotilla resume hub --dry-run shows what would be, and flotilla resume hub goes on"
}

// Spares explains why a cluster does not wait, for people.
func (h *Hold) Spares() string {
	return fmt.Sprintf("the control plane was set back to an older backup, as was found at %s; all that this cluster has seen of it is known, and it goes on here", h.Since.Format(time.RFC3339))
}

// Found explains what was found, for people.
func (h *Hold) Found() string {
	names := excerpt.Names(slices.Sorted(slices.Values(h.Clusters)), mostNamed)
	found := fmt.Sprintf("the control plane was set back to an older backup: its store was at revision %d, and %s had seen %d. Since %s nothing is changed or removed",
		h.Store, names, h.Seen, h.Since.Format(time.RFC3339))
	if h.Whole() {
		return found + " in clusters"
	}
	return found + " in that cluster; all wait once a second one says the same"
}

// History is what the store records of its runs.
type History struct {
	// Runs are the latest, the last one last.
	Runs []Run `json:"runs,omitempty"`
	// Hold is nil unless the hub waits.
	Hold *Hold `json:"hold,omitempty"`
	// Forgiven are lost runs, up to a revision, that a person has decided to go
	// on without.
	Forgiven []Lost `json:"forgiven,omitempty"`
}

const (
	// mostRuns is how many runs are kept: marks of older ones do not count as lost.
	mostRuns = 64
	// mostForgiven is how many lost runs are.
	mostForgiven = 64
)

// ParseHistory reads a history; an empty one if text is empty or none.
func ParseHistory(text string) History {
	var h History
	if json.Unmarshal([]byte(text), &h) != nil {
		return History{}
	}
	return h
}

// Encode returns the history as ParseHistory reads it.
func (h History) Encode() string {
	data, err := json.Marshal(h)
	if err != nil {
		panic(err) // strings, numbers and times of ours always encode
	}
	return string(data)
}

// Behind reports whether a member has seen what the store has lost. Own is the present
// run, and began the revision of the store when it began; the history need not have it
// yet.
func (h History) Behind(m *Mark, own string, began int64) bool {
	if m == nil || m.ID == own || h.Forgives(m) {
		return false
	}
	at := slices.IndexFunc(h.Runs, func(r Run) bool { return r.Number == m.Run })
	switch {
	case at < 0:
		return len(h.Runs) == 0 || m.Run > h.Runs[len(h.Runs)-1].Number
	case h.Runs[at].ID != m.ID:
		return true
	case at+1 < len(h.Runs):
		return h.Runs[at+1].Began > 0 && m.Revision > h.Runs[at+1].Began
	case slices.ContainsFunc(h.Runs, func(r Run) bool { return r.ID == own }):
		return false // that run began after this one, elsewhere: began says nothing of it
	default:
		return m.Revision > began
	}
}

// Forgives reports whether a person has decided to go on without what a mark shows.
// What its run did after the forgiven revision is not forgiven.
func (h History) Forgives(m *Mark) bool { return m != nil && covers(h.Forgiven, m) }

// Starts returns the history with a new run in it, and that run. A run that
// is there already is not added again: several members may ask for it at once, and a
// second entry would end the first.
func (h History) Starts(id string, began int64) (next History, run Run, changed bool) {
	if at := slices.IndexFunc(h.Runs, func(r Run) bool { return r.ID == id }); at >= 0 {
		return h, h.Runs[at], false
	}
	number := 1
	if last := len(h.Runs) - 1; last >= 0 {
		number = h.Runs[last].Number + 1
	}
	run = Run{Number: number, ID: id, Began: began}
	h.Runs = append(slices.Clone(h.Runs), run)
	h.Runs = h.Runs[max(0, len(h.Runs)-mostRuns):]
	return h, run, true
}

// Last returns the run that was recorded last; false if there is none.
func (h History) Last() (Run, bool) {
	if len(h.Runs) == 0 {
		return Run{}, false
	}
	return h.Runs[len(h.Runs)-1], true
}

// Lends returns the run that a mark of a revision may name while the present one, in which
// the store was opened at began, is not recorded yet: the last one, if what was seen is
// from before the present one, and nothing is known to be lost of it. A start after which
// nothing changes can so mark what the run before it did not come to mark, and write nothing.
func (h History) Lends(seen, began int64) (Run, bool) {
	last, ok := h.Last()
	if !ok || last.Began == 0 || seen > began || h.Forgives(&Mark{Run: last.Number, ID: last.ID, Revision: seen}) {
		return Run{}, false
	}
	return last, true
}

// Since is the ID of the run that is the present one of a hub which was opened at a
// revision; empty if that is not written down yet. One that is being written down is.
func (h History) Since(opened int64) string {
	if last, ok := h.Last(); ok && (last.Began == 0 || last.Began >= opened) {
		return last.ID
	}
	return ""
}

// Outruns reports whether a mark is of an earlier run, and of further on than the store was
// when the hub was opened, which is 0 where that is not known: what has been written since
// may have passed it, and so may the beginning of the present run, which is written down
// later.
func (h History) Outruns(m *Mark, opened int64) bool {
	return m != nil && opened > 0 && m.Revision > opened && m.ID != h.Since(opened) && !h.Forgives(m)
}

// DelaysBegin returns the history with a run's beginning no earlier than the revision at which the run
// was first written down: until then, agents that ask for the last run have marks of the one
// before. Changed is false where that is so already.
func (h History) DelaysBegin(id string, began int64) (next History, run Run, changed bool) {
	at := slices.IndexFunc(h.Runs, func(r Run) bool { return r.ID == id })
	if at < 0 {
		return h, run, false
	}
	if h.Runs[at].Began >= began {
		return h, h.Runs[at], false
	}
	h.Runs = slices.Clone(h.Runs)
	h.Runs[at].Began = began
	return h, h.Runs[at], true
}

// WithHold returns the history with a hold for what a cluster has seen, and whether
// that says more than h did.
func (h History) WithHold(cluster string, m *Mark, store int64, now time.Time) (History, bool) {
	hold := Hold{Since: now.UTC().Truncate(time.Second), Store: store}
	if h.Hold != nil {
		hold = *h.Hold
	}
	more := h.Hold == nil || !slices.Contains(hold.Clusters, cluster) || !hold.Covers(m)
	hold.Clusters, hold.Lost = with(hold.Clusters, cluster), extended(hold.Lost, Lost{m.ID, m.Revision})
	hold.Seen = max(hold.Seen, m.Revision)
	h.Hold = &hold
	return h, more
}

// Resumes returns the history without its hold: what was found to be lost is lost.
func (h History) Resumes() History {
	if h.Hold == nil {
		return h
	}
	for _, lost := range h.Hold.Lost {
		h.Forgiven = extended(h.Forgiven, lost)
	}
	h.Hold = nil
	return h
}

// Without returns the history that goes on without what a run has seen up to a revision.
func (h History) Without(id string, upTo int64) History {
	h.Forgiven = extended(h.Forgiven, Lost{id, upTo})
	return h
}

// with returns names with one more, if it is not among them.
func with(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(slices.Clone(names), name)
}

// Next returns the mark that a member is to carry, given the one that it has, the
// present run and the highest revision that concerned it; ok is false if that is
// the one it has. Forgiven says that the one it has is of a run that was lost.
func Next(have *Mark, run Run, seen int64, forgiven bool) (next Mark, ok bool) {
	if seen == 0 || have != nil && !forgiven && have.Revision >= seen {
		return Mark{}, false
	}
	return Mark{Run: run.Number, ID: run.ID, Revision: seen}, true
}
