package rollup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Share is the state of one Kustomization that applies a source, at a commit.
type Share struct {
	// Name of the Kustomization.
	Name string
	// State and Description are those of the commit status of the commit that last
	// changed it. Empty: it was not judged yet.
	State, Description string
	// Reason is that of its Ready condition; empty where it has none.
	Reason string
	// Retired means that it fails because the commit has removed it, and the
	// Kustomization that should remove it fails, too.
	Retired bool
	// Unchanged means that the commit changes nothing in it.
	Unchanged bool
	// Awaited means that it has yet to try the commit.
	Awaited bool
	// Suspended means that it will not try it.
	Suspended bool
	// Waits is a dependency that it waits for and that does not exist; empty for none. What it applied stays, but
	// it applies nothing new until somebody corrects that.
	Waits string
	// Meant is the Kustomization whose name is nearly Waits; empty where none is near.
	Meant string
	// Ready and Total count clusters.
	Ready, Total int
}

// Source aggregates all Kustomizations that apply a source at one commit: "41 unchanged, 2 roll out: 12/40; web:
// …". Those that the commit does not change count as well: it succeeds once all are well. Failures are reported
// before what is in progress, and what asks most of people before the rest. The order of shares does not matter.
func Source(shares []Share) Rollup {
	shares = slices.SortedFunc(slices.Values(shares), byConcern)
	var counts shareCounts
	out := Rollup{State: StateSuccess}
	reporting := ""
	for _, s := range shares {
		counts.add(s)
		if s.Suspended {
			continue
		}
		out.Ready, out.Total = out.Ready+s.Ready, out.Total+s.Total
		state := s.state()
		if reporting == "" && state != StateSuccess && s.Description != "" && !s.Awaited && s.State != StateSuccess {
			reporting = s.Name + ": " + s.Description
		}
		if out.State == StateSuccess || state == StateFailure {
			out.State = state
		}
	}
	if len(shares) > 0 && counts.suspended == len(shares) {
		out.State = StateFailure
	}
	out.Description = counts.String()
	if counts.alone() && reporting != "" {
		out.Description = reporting
	} else if reporting != "" {
		out.Description += "; " + reporting
	} else if kept := firstKept(shares); kept != "" && out.State == StateSuccess {
		out.Description += "; " + kept
	}
	out.Description = Sanitise(out.Description)
	return out
}

// firstKept returns the first share with an object that stays although it is not
// wanted, and the text about it; empty for none.
func firstKept(shares []Share) string {
	for _, s := range shares {
		if kept := keptOf(s.Description); kept != "" && s.state() == StateSuccess && !s.Suspended {
			return s.Name + ": " + kept
		}
	}
	return ""
}

// absent returns what the share waits for, as in "base, which does not exist". Waits must not be empty.
func (s Share) absent() string {
	return s.Waits + ", which does not exist" + propagation.DidYouMean(s.Meant)
}

// state returns the state that counts: pending where it is not known.
func (s Share) state() string {
	if s.Awaited || s.State == "" || s.Waits != "" && s.State == StateSuccess {
		return StatePending
	}
	return s.State
}

// shareCounts counts shares by state.
type shareCounts struct {
	unchanged, notReady, changed, failed, rolling, awaited, suspended, waiting int
	// waitsFor are the dependencies that do not exist, in the order in which they
	// were added, and absent is the text about the first.
	waitsFor []string
	absent   string
	// ready and total count the clusters of shares that roll out.
	ready, total int
}

func (t *shareCounts) add(s Share) {
	switch {
	case s.Suspended:
		t.suspended++
	case s.Waits != "" && s.state() == StatePending:
		if t.waiting++; t.absent == "" {
			t.absent = s.absent()
		}
		if !slices.Contains(t.waitsFor, s.Waits) {
			t.waitsFor = append(t.waitsFor, s.Waits)
		}
	case s.Awaited:
		t.awaited++
	case s.Unchanged:
		t.unchanged++
		if s.state() != StateSuccess {
			t.notReady++
		}
	case s.state() == StateFailure:
		t.failed++
	case s.state() == StatePending:
		t.rolling, t.ready, t.total = t.rolling+1, t.ready+s.Ready, t.total+s.Total
	default:
		t.changed++
	}
}

// alone reports whether there is only one share.
func (t *shareCounts) alone() bool {
	return t.unchanged+t.changed+t.failed+t.rolling+t.awaited+t.suspended+t.waiting == 1
}

// String lists how many shares are in each state.
func (t *shareCounts) String() string {
	var out []string
	add := func(count int, one, more string) {
		if count == 1 {
			out = append(out, "1 "+one)
		} else if count > 1 {
			out = append(out, fmt.Sprintf("%d %s", count, more))
		}
	}
	add(t.failed, "failed", "failed")
	switch len(t.waitsFor) {
	case 0:
	case 1:
		add(t.waiting, "waits for "+t.absent, "wait for "+t.absent)
	default:
		absent := fmt.Sprintf("%s and %d more, which do not exist", t.waitsFor[0], len(t.waitsFor)-1)
		add(t.waiting, "waits for "+absent, "wait for "+absent)
	}
	unchanged := "unchanged"
	if t.notReady > 0 {
		unchanged = fmt.Sprintf("unchanged, of them %d not ready", t.notReady)
	}
	add(t.unchanged, unchanged, unchanged)
	add(t.changed, "ready", "ready")
	add(t.awaited, "to be tried", "to be tried")
	add(t.suspended, "suspended", "suspended")
	progress := ""
	if t.total > 0 {
		progress = fmt.Sprintf(": %d/%d", t.ready, t.total)
	}
	add(t.rolling, "rolls out"+progress, "roll out"+progress)
	if len(out) == 0 {
		return "nobody applies it"
	}
	return strings.Join(out, ", ")
}
