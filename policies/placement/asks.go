package placement

import (
	"slices"
	"strings"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Asks returns the clusters of which Decide counts what fits there, sorted by name: those
// that the placement means. There are none where nothing is due, and where room is no
// matter.
func Asks(b workv1alpha2.Binding, in Situation, opts Options) []string {
	s := stateOf(b)
	if !Mine(b, opts.SchedulerName) || !CapacityMatters(s.spec) {
		return nil
	}
	if _, due := s.due(in.Clusters); !due && s.record.Stays == nil {
		if forbidden, _ := barred(&s, in, opts); len(targetsIn(s.spec.Clusters, forbidden)) == 0 {
			return nil
		}
	}
	return in.Clusters.meant(s.request(in.Peers))
}

// meant returns the clusters that a term of the request means, and those that it runs in.
func (s Snapshot) meant(req Request) []string {
	p := req.Spec.Placement
	if p == nil {
		return s.Names()
	}
	var matches []selector.Clusters
	for _, term := range termsOf(p, req) {
		if m, err := selector.Compile(term.affinity); err == nil {
			matches = append(matches, m)
		}
		for i := range term.overflow {
			if m, err := selector.Compile(&term.overflow[i]); err == nil {
				matches = append(matches, m)
			}
		}
	}
	out := make([]string, 0, len(s.clusters))
	for _, c := range s.clusters {
		if c.DeletionTimestamp == nil && (stands(req.Spec.Clusters, c.Name) || slices.ContainsFunc(matches, func(m selector.Clusters) bool { return m.Matches(c.Cluster) })) {
			out = append(out, c.Name)
		}
	}
	return out
}

// NeedOf returns what one unit of the workload asks for: a replica, or a set of components.
func NeedOf(spec *workv1alpha2.ResourceBindingSpec) estimate.Need { return needOf(spec) }

// StaleEstimate is what a cluster that does not say what fits there has said last.
type StaleEstimate struct {
	Cluster string `json:"cluster"`
	// Fits is what counted: what it said, less what was placed there since.
	Fits int32 `json:"fits"`
	// Age is how old that is, such as 2m0s.
	Age string `json:"age"`
}

// mostStale is how many of them a record names.
const mostStale = 16

func staleIn(room map[string]estimate.Answer) []StaleEstimate {
	var out []StaleEstimate
	for name, a := range room {
		if a.Age > 0 {
			out = append(out, StaleEstimate{Cluster: name, Fits: a.Fits, Age: max(a.Age.Round(time.Second), time.Second).String()})
		}
	}
	slices.SortFunc(out, func(a, b StaleEstimate) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out[:min(len(out), mostStale)]
}
