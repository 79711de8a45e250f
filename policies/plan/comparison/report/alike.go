package report

import (
	"encoding/json"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// alike groups templates that move in the same way, for the same reason, in the order in which the first of each comes.
func alike(placements []comparison.Placement) [][]comparison.Placement {
	var out [][]comparison.Placement
	at := map[string]int{}
	for _, p := range placements {
		way, err := json.Marshal([]any{p.PolicyBefore, p.Policy, p.Why, p.Shifts})
		if err != nil {
			way = []byte(p.Object.String()) // of plain values, all can be written
		}
		i, known := at[string(way)]
		if !known {
			i = len(out)
			at[string(way)] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	return out
}

// titles are the names of templates.
func titles(placements []comparison.Placement) []string {
	out := make([]string, len(placements))
	for i := range placements {
		out[i] = placements[i].Object.String()
	}
	return out
}
