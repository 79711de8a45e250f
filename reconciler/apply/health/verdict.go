package health

import (
	"fmt"
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
}

// String returns "Deployment/shop/web: eu-3: not ready 2/5".
func (v Verdict) String() string {
	if v.Reason == "" {
		return inventory.Describe(v.ID)
	}
	return inventory.Describe(v.ID) + ": " + v.Reason
}

// nothingRuns is why a workload is not ready that no policy carries.
const nothingRuns = "no policy propagates it, and nothing runs on the control plane itself"

// RunsNowhere reports whether it is of a workload that no policy carries.
func (v Verdict) RunsNowhere() bool { return v.Reason == nothingRuns }

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

// waits begins what is said of an object that is waited for.
const waits = "; waits for "

// Waits names one of the objects that are waited for: the one that was named before, in what was said, as long as
// it is among them, so that the text changes no more often than it has to.
func Waits(pending []Verdict, said string) string {
	for _, v := range pending {
		if text := waits + inventory.Describe(v.ID); strings.HasSuffix(said, text) || strings.Contains(said, text+";") {
			return text
		}
	}
	return waits + inventory.Describe(pending[0].ID)
}

// Split splits what is not healthy into what may still become so, what is not known,
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
	return pending, silent, failed
}
