package explain

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/explain/columns"
)

func (w *writer) overrides(o *Overrides) {
	if o == nil {
		return
	}
	w.section("OVERRIDES")
	for _, g := range groupRules(o.Clusters) {
		facts := columns.Table{Plain: true}
		facts.Add(fmt.Sprintf("  %s, in", g.Rule), list(g.clusters, w.most()))
		facts.Write(w)
		w.changes(g.Changes)
	}
	facts := columns.Table{Plain: true}
	for _, c := range o.Clusters {
		if c.Error != "" {
			facts.Add("  fails in "+c.Cluster, c.Error)
		}
	}
	if len(o.Idle) > 0 {
		names := make([]string, len(o.Idle))
		for i, ref := range o.Idle {
			names[i] = ref.String()
		}
		facts.Add("  in none of its clusters", list(names, w.most()))
	}
	facts.Write(w)
}

func (w *writer) changes(changes []Change) {
	t := columns.Table{Plain: true}
	for i, c := range changes {
		if more := len(changes) - maxNamed; i == maxNamed && more > 1 && !w.opts.All {
			t.Add(fmt.Sprintf("    and %d more", more), "")
			break
		}
		t.Add("    "+c.Path, c.text())
	}
	if len(changes) == 0 {
		t.Add("    changes nothing", "")
	}
	t.Write(w)
}

// group is a rule that does the same in several clusters.
type group struct {
	Rule
	clusters []string
}

// groupRules returns the rules in the order in which they are first applied.
func groupRules(clusters []ClusterOverrides) []group {
	var out []group
	for _, c := range clusters {
		for _, r := range c.Rules {
			i := slices.IndexFunc(out, func(g group) bool { return reflect.DeepEqual(g.Rule, r) })
			if i < 0 {
				i, out = len(out), append(out, group{Rule: r})
			}
			out[i].clusters = append(out[i].clusters, c.Cluster)
		}
	}
	return out
}

// text shows a change of a field, short.
func (c Change) text() string {
	was, is := c.Old, c.New
	a, texts := was.(string)
	b, both := is.(string)
	if texts && both && (strings.Contains(a, "\n") || strings.Contains(b, "\n")) {
		was, is = differing(a, b)
	}
	switch {
	case c.Old == nil:
		return "new: " + short(is)
	case c.New == nil:
		return "removed: " + short(was)
	default:
		return short(was) + " → " + short(is)
	}
}

// differing returns the lines of two texts without those at both ends that are
// equal.
func differing(a, b string) (string, string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return strings.Join(x, "\n"), strings.Join(y, "\n")
}

// maxValue is how many characters of a value are shown.
const maxValue = 70

func short(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	text := []rune(strings.TrimSpace(out.String()))
	if len(text) > maxValue {
		return string(text[:maxValue-1]) + "…"
	}
	return string(text)
}
