package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Verdict is how one object fares.
type Verdict struct {
	ID    inventory.ID
	State rollup.State
	// Reason is empty for a healthy object.
	Reason string
	// Denied says that who asked may not read it.
	Denied bool
	// Follows says that it waits for others itself: these are what to look at.
	Follows bool
}

// String returns "Deployment/shop/web: eu-3: not ready 2/5".
func (v Verdict) String() string {
	if v.Reason == "" {
		return inventory.Describe(v.ID)
	}
	return inventory.Describe(v.ID) + ": " + v.Reason
}

// NothingRuns is why a workload, or a claim, is not ready that no policy carries.
const NothingRuns = "no policy propagates it, and nothing runs on the control plane itself"

// RunsNowhere reports whether it is of a workload that no policy carries.
func (v Verdict) RunsNowhere() bool { return v.Reason == NothingRuns }

// List names the first of verdicts, and how many more there are.
func List(verdicts []Verdict, most int) string {
	var texts []string
	for _, v := range verdicts[:min(most, len(verdicts))] {
		texts = append(texts, v.String())
	}
	text := strings.Join(texts, "; ")
	if more := len(verdicts) - most; more > 0 {
		text += fmt.Sprintf("; and %d more objects", more)
	}
	return text
}

// waits is the prefix of the text about an object that is waited for.
const waits = "; waits for "

// Waits names one of the objects that are waited for, as Split has them: the one that was named before, in the last message, as
// long as it is among them, so that the text changes no more often than it has to, and waits for no other one.
func Waits(pending []Verdict, lastMessage string) string {
	if last := slices.IndexFunc(pending, func(v Verdict) bool { return v.Follows }); last > 0 {
		pending = pending[:last]
	}
	if text := nowhere(pending); text != "" {
		return text
	}
	for _, v := range pending {
		if text := waits + inventory.Describe(v.ID); strings.HasSuffix(lastMessage, text) || strings.Contains(lastMessage, text+";") {
			return text
		}
	}
	return waits + inventory.Describe(pending[0].ID)
}

// nowhere names what is waited for in vain, as no policy carries it: workloads first. It is empty for nothing.
func nowhere(pending []Verdict) string {
	var first, rest []inventory.ID
	for _, v := range pending {
		switch {
		case !v.RunsNowhere():
		case inventory.IsWorkload(v.ID):
			first = append(first, v.ID)
		default:
			rest = append(rest, v.ID)
		}
	}
	if all := append(first, rest...); len(all) > 0 {
		return waits + inventory.First(all, namedNowhere) + ", which no policy carries, so that no cluster has " + itOrThem(len(all))
	}
	return ""
}

// namedNowhere is how many objects that no policy carries are named.
const namedNowhere = 3

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// Split splits what is not healthy into what may still become so, those last that wait for others, what is not known,
// and what has failed.
func Split(verdicts []Verdict) (pending, silent, failed []Verdict) {
	for _, v := range verdicts {
		switch v.State {
		case rollup.Progressing:
			pending = append(pending, v)
		case rollup.Unknown:
			silent = append(silent, v)
		case rollup.Failed:
			failed = append(failed, v)
		case rollup.Healthy:
		}
	}
	first, last := []Verdict(nil), []Verdict(nil)
	for _, v := range pending {
		if v.Follows {
			last = append(last, v)
			continue
		}
		first = append(first, v)
	}
	return append(first, last...), silent, failed
}
