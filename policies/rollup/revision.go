package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

const (
	// MaxDescription is how many runes of a commit status a forge shows.
	MaxDescription = 140
	// MaxNote is how many of them a note of Git has, which could have any number.
	MaxNote = 1000
)

// Rollup is the outcome of a revision as a commit status shows it.
type Rollup struct {
	// State is "pending", "success" or "failure".
	State string
	// Description is one line of at most MaxDescription runes:
	// "2/3 clusters ready: eu-3 waits for Deployment shop/web 2/5".
	Description string
	// Ready and Total count clusters.
	Ready, Total int
}

// States of a Rollup.
const (
	StatePending = "pending"
	StateSuccess = "success"
	StateFailure = "failure"
)

// finding is an object that is not as it should be, or a cluster.
type finding struct {
	state           State
	cluster, object string
	reason          string
}

func (f finding) String() string {
	switch {
	case f.state == Healthy:
		return f.object + " differs in " + f.cluster + ": " + f.reason
	case f.state == Unknown:
		return f.cluster + " " + f.reason
	case f.cluster == "":
		return f.object + ": " + f.reason
	case f.state == Failed:
		return f.cluster + " failed on " + f.object + ": " + f.reason
	case strings.HasPrefix(f.reason, "not ready"):
		return f.cluster + " waits for " + f.object + strings.TrimPrefix(f.reason, "not ready")
	default:
		return f.cluster + " waits for " + f.object + ": " + f.reason
	}
}

// Revision aggregates all templates of a revision. Failures are reported before clusters that are not heard of, and
// those before what is in progress; then what concerns the hub before clusters, and then by cluster and object. The
// order of parts does not matter.
func Revision(parts []Part) Rollup {
	ready := map[string]bool{}
	var findings, notes []finding
	for _, p := range parts {
		findings = append(findings, onHub(p)...)
		for _, c := range p.Clusters {
			if _, ok := ready[c.Name]; !ok {
				ready[c.Name] = true
			}
			if c.State != Healthy {
				ready[c.Name] = false
				findings = append(findings, findingOf(p, c))
			}
			if c.Note != "" {
				notes = append(notes, finding{Healthy, c.Name, p.Object, c.Note})
			}
		}
	}
	for _, p := range parts {
		for _, c := range p.Leaving {
			ready[c.Name] = false
			findings = append(findings, finding{c.State, c.Name, p.Object, c.Reason})
		}
	}
	out := Rollup{State: StateSuccess, Total: len(ready)}
	for _, ok := range ready {
		if ok {
			out.Ready++
		}
	}
	slices.SortFunc(findings, byWeight)
	slices.SortFunc(notes, byWeight)
	if len(findings) > 0 {
		out.State = StatePending
		if findings[0].state == Failed {
			out.State = StateFailure
		}
	}
	text := describe(out, findings, notes)
	if out.State == StateSuccess && slices.ContainsFunc(parts, func(p Part) bool { return p.Contested }) {
		out.State = StatePending // it is not followed, and nothing that is in progress will change that
		text += "; " + Unheeded(parts)
	}
	for _, aside := range []string{Moved(parts), Kept(parts), Unheeded(parts)} {
		if aside != "" && out.State == StateSuccess {
			text += "; " + aside
		}
	}
	out.Description = Sanitise(text)
	return out
}

// onHub returns the findings for the template on the control plane. That no cluster fits is reported after the
// clusters that it is meant for and that do not exist.
func onHub(p Part) []finding {
	switch {
	case p.State == Failed && len(p.Absent) > 0:
		_, reason := p.Worst(nil)
		return []finding{{Failed, "", p.Object, reason}}
	case p.State != Healthy && len(p.Absent) > 0:
		return []finding{{p.State, "", p.Object, p.Reason}, absent(p)}
	case p.State != Healthy:
		return []finding{{p.State, "", p.Object, p.Reason}}
	case len(p.Absent) > 0:
		return []finding{absent(p)}
	}
	return nil
}

// findingOf returns the finding for one cluster. For a cluster that is not heard
// of, it is the same whatever runs there, so that it is reported once.
func findingOf(p Part, c ClusterPart) finding {
	if c.Silence != nil {
		return finding{c.State, c.Name, "", c.Silence.String()}
	}
	return finding{c.State, c.Name, p.Object, c.Reason}
}

func byWeight(a, b finding) int {
	return cmp.Or(cmp.Compare(b.state, a.state), cmp.Compare(a.cluster, b.cluster),
		cmp.Compare(a.object, b.object), cmp.Compare(a.reason, b.reason))
}

func describe(r Rollup, findings, notes []finding) string {
	counts := fmt.Sprintf("%d/%d clusters ready", r.Ready, r.Total)
	switch {
	case len(findings) == 0 && r.Total == 0:
		return "applied; nothing goes to clusters"
	case len(findings) == 0 && len(notes) > 0:
		return counts + "; " + notes[0].String()
	case len(findings) == 0:
		return counts
	case r.Total == 0 || findings[0].cluster == "":
		return findings[0].String()
	default:
		return counts + ": " + findings[0].String()
	}
}

// Sanitise is SanitiseTo for what forges show.
func Sanitise(s string) string { return SanitiseTo(s, MaxDescription) }

// SanitiseTo returns s on one line of at most longest runes, without control
// characters, runs of white space or credentials of addresses. A trailer at its end that lets go what the commit holds
// stays whole, or goes.
func SanitiseTo(s string, longest int) string {
	return excerpt.RunesTo(excerpt.Line(excerpt.WithoutCredentials(s)), gitopsv1alpha1.AllowDeleteTrailer+": ", longest)
}
