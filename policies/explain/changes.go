package explain

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/flotilla-io/flotilla/policies/explain/change"
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
		facts.Add("  for other clusters only", list(names, w.most()))
	}
	facts.Write(w)
}

func (w *writer) changes(changes []change.Change) {
	t := columns.Table{Plain: true}
	for i, c := range changes {
		if more := len(changes) - maxNamed; i == maxNamed && more > 1 && !w.opts.All {
			t.Add(fmt.Sprintf("    and %d more", more), "")
			break
		}
		t.Add("    "+c.Path, c.Text())
	}
	if len(changes) == 0 {
		t.Add("    changes nothing", "")
	}
	t.Write(w)
}

// group is a rule, and the clusters in which it makes the same changes.
type group struct {
	Rule
	clusters []string
}

// groupRules groups the rules of all clusters, in the order in which they are first applied.
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
