package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Verdict is the health of one object.
type Verdict struct {
	ID    inventory.ID
	State rollup.State
	// Reason is empty for a healthy object.
	Reason string
	// Denied says that the requester may not read the object.
	Denied bool
	// Follows says that the object waits for others itself, so that people should look at these first.
	Follows bool
}

// String returns "Deployment/shop/web: eu-3: not ready 2/5".
func (v Verdict) String() string {
	if v.Reason == "" {
		return inventory.Describe(v.ID)
	}
	return inventory.Describe(v.ID) + ": " + v.Reason
}

// NothingRuns is the reason why a workload or a volume claim without a policy is not ready.
const NothingRuns = "no policy propagates it, and nothing runs on the control plane itself"

// RunsNowhere reports whether the object is a workload or a volume claim that no policy propagates.
func (v Verdict) RunsNowhere() bool { return v.Reason == NothingRuns }

// List names the first verdicts, most of them at most, and how many more there are.
func List(verdicts []Verdict, most int) string {
	var texts []string
	for _, v := range verdicts[:min(most, len(verdicts))] {
		texts = append(texts, v.String())
	}
	text := strings.Join(texts, "; ")
	if more := len(verdicts) - most; more > 0 {
		text += fmt.Sprintf("; and %d more object", more)
		if more > 1 {
			text += "s"
		}
	}
	return text
}

// waits is the prefix of the text about an object that is waited for.
const waits = "; waits for "

// Waits returns a text that names one of the objects that are waited for, in the order of Split. It is the one
// that the last message named, as long as it is among them and does not wait for others, so that the status is not
// written again whenever another object becomes healthy.
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

// nowhere names what is waited for in vain, as no policy propagates it, workloads first; empty for nothing.
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

// namedNowhere is how many objects without a policy a text names.
const namedNowhere = 3

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// IDs returns the objects of verdicts, in their order.
func IDs(verdicts []Verdict) []inventory.ID {
	ids := make([]inventory.ID, 0, len(verdicts))
	for _, v := range verdicts {
		ids = append(ids, v.ID)
	}
	return ids
}

// Split splits the verdicts on objects that are not healthy: pending may still become so, with those that wait
// for others last; the health of silent is not known; failed have failed.
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
