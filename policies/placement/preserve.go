package placement

import (
	"maps"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/failover"
)

// unpreserved are clusters that a template should be moved off, and stays in as its state cannot be carried over; and why.
type unpreserved map[string]error

// withhold takes those clusters out of due whose state is wanted and cannot be read, and returns them.
func withhold(s *state, due failover.Due, opts Options) unpreserved {
	if !opts.Failover.State {
		return nil
	}
	var out unpreserved
	for _, name := range targetsIn(s.spec.Clusters, due) {
		_, err := failover.State(s.Binding, name, due[name].Application)
		if err == nil {
			continue
		}
		if out == nil {
			out = unpreserved{}
		}
		out[name] = err
	}
	maps.DeleteFunc(due, func(name string, _ failover.Cause) bool { return out[name] != nil })
	return out
}

// tell has the record of a decision say so, beside what else stays.
func (u unpreserved) tell(r *Record) {
	if len(u) == 0 {
		return
	}
	var texts []string
	if r.Stays != nil {
		texts = append(texts, r.Stays.Message)
	}
	for _, name := range slices.Sorted(maps.Keys(u)) {
		texts = append(texts, "It stays in "+name+": "+u[name].Error()+".")
	}
	r.Stays = &Stays{Message: strings.Join(texts, " ")}
}
