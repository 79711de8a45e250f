package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/explain/columns"
)

// placement writes a table of the clusters for each term of the affinity.
func (w *writer) placement(e Explanation) {
	p := e.Placement
	if p == nil {
		return
	}
	for i, t := range p.Terms {
		if len(p.Terms) == 1 {
			t.Error = "" // shown among the problems
		}
		if len(t.Clusters) == 0 && t.Error == "" {
			continue
		}
		title := "CLUSTERS"
		if t.Name != "" {
			title += ", affinity " + t.Name
		}
		w.section(title)
		if t.Error != "" {
			facts := columns.Table{Plain: true}
			facts.Add("  not taken:", t.Error)
			facts.Write(w)
		}
		var stands []Target
		if last := i == len(p.Terms)-1; last && p.Stands != nil {
			stands = p.Stands.Clusters
		}
		w.term(t, stands)
	}
}

// term writes the table of one term; stands are the clusters that the template is placed in.
func (w *writer) term(t Term, stands []Target) {
	rows, rest := rowsOf(t, stands, w.opts.All)
	if len(rows) > 0 {
		out := columns.Table{Right: map[int]bool{2: true, 3: true, 4: true, 5: true}}
		out.Add("  CLUSTER", "VERDICT", "SCORE", "ROOM", "WEIGHT", "REPLICAS", "WHY")
		for _, r := range rows {
			out.Add(r.cells()...)
		}
		out.Write(w)
	}
	facts := columns.Table{Plain: true}
	for _, g := range rest {
		facts.Add(fmt.Sprintf("  %d refused by", len(g.clusters)), fmt.Sprintf("%s: %s: %s", g.plugin, g.why, list(g.clusters, w.most())))
	}
	if t.Spread != "" {
		facts.Add("  spread", t.Spread)
	}
	if t.Division != "" {
		facts.Add("  division", t.Division)
	}
	facts.Write(w)
}

// row is one cluster in the table of a term.
type row struct {
	Verdict
	// has is what the cluster has of the template; nil where the template is not placed there.
	has *Target
	// held means that the template is placed in any cluster.
	held bool
}

// rowsOf returns the rows of a term, beginning with clusters that get or have the template, and the refused
// clusters, grouped by reason. With all, refused clusters get rows too.
func rowsOf(t Term, stands []Target, all bool) (rows []row, rest []refusals) {
	holds := map[string]*Target{}
	for i := range stands {
		holds[stands[i].Name] = &stands[i]
	}
	for _, v := range t.Clusters {
		r := row{v, holds[v.Cluster], len(stands) > 0}
		if all || v.Result != Refused || r.has != nil {
			rows = append(rows, r)
			continue
		}
		rest = addRefusal(rest, v)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.Cluster, b.Cluster))
	})
	slices.SortStableFunc(rest, func(a, b refusals) int { return cmp.Compare(len(b.clusters), len(a.clusters)) })
	return rows, rest
}

func (r row) order() int {
	i := slices.Index([]Result{Chosen, Fits, LeftOut, Refused}, r.Result) * 2
	if r.has == nil {
		i++
	}
	return i
}

func (r row) cells() []string {
	score, capacity, weight := "-", "-", "-"
	if r.Result != Refused {
		score = fmt.Sprint(r.Score)
	}
	if r.Capacity != nil {
		capacity = fmt.Sprint(*r.Capacity)
		if *r.Capacity >= unlimited {
			capacity = "any"
		}
	}
	if r.Weight != 0 {
		weight = fmt.Sprint(r.Weight)
	}
	why := r.Why
	if r.Plugin != "" {
		why = r.Plugin + ": " + reason(r.Why)
	}
	if r.Counted != "" {
		why = strings.TrimPrefix(why+"; room by its "+r.CountedBy+", "+r.Counted+" ago", "; ")
	}
	if r.Unreported != "" {
		why = strings.TrimPrefix(why+"; room by the sum of its nodes, as it does not tell "+r.Unreported, "; ")
	}
	if closed := r.closed(); closed != "" && r.Result != Refused {
		why = strings.TrimPrefix(why+"; "+closed, "; ")
	}
	if len(r.Taints) > 0 && r.Result != Refused {
		why = strings.TrimPrefix(why+"; tainted "+strings.Join(r.Taints, ", "), "; ")
	}
	if r.Tier > 0 {
		why = strings.TrimSuffix(fmt.Sprintf("overflow affinity %d; %s", r.Tier, why), "; ")
	}
	return []string{"  " + r.Cluster, string(r.Result), score, capacity, weight, r.replicas(), why}
}

// closed returns whether its operators have cordoned or drained the cluster, in the words of flotilla status; empty if not.
func (r row) closed() string {
	switch {
	case r.Drained && r.has != nil:
		return "draining"
	case r.Drained:
		return "drained"
	case r.Cordoned:
		return "cordoned"
	default:
		return ""
	}
}

// unlimited is the capacity of a cluster that reports no limits.
const unlimited = 1<<31 - 1

// replicas returns the number of replicas in the cluster, with the new one behind
// an arrow where the decision would change it.
func (r row) replicas() string {
	now, had := r.Replicas, int32(0)
	if r.has != nil {
		had = r.has.Replicas
	}
	switch {
	case now != had && (r.has != nil || r.held) && r.Result != Fits:
		return fmt.Sprintf("%d → %d", had, now)
	case max(now, had) != 0:
		return fmt.Sprint(max(now, had))
	default:
		return "-"
	}
}

// refusals are the clusters that a plugin refused for the same reason.
type refusals struct {
	plugin, why string
	clusters    []string
}

func addRefusal(all []refusals, v Verdict) []refusals {
	why := reason(v.Why)
	i := slices.IndexFunc(all, func(g refusals) bool { return g.plugin == v.Plugin && g.why == why })
	if i < 0 {
		i, all = len(all), append(all, refusals{plugin: v.Plugin, why: why})
	}
	all[i].clusters = append(all[i].clusters, v.Cluster)
	return all
}

// reason returns a plugin's reason without its beginning, as the clusters are named beside it.
func reason(text string) string { return strings.TrimPrefix(text, "cluster(s) ") }
