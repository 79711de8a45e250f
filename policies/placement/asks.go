package placement

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Asks returns the clusters of which Decide counts what fits there, sorted by name: those
// that the placement selects. There are none where nothing is due, and where capacity does not
// matter: where it is not divided by room, only what has to leave a cluster, or returns to one, counts any.
func Asks(b workv1alpha2.Binding, in Situation, opts Options) []string {
	s := stateOf(b)
	if !Mine(b, opts.SchedulerName) || amountOf(s.spec) == 0 {
		return nil
	}
	_, due := s.due(in.Clusters)
	if !CapacityMatters(s.spec) || !due && s.record.Stays == nil {
		forbidden, _ := barred(&s, in, opts)
		s.back = failover.BackTo(s.record.Left, in.Clusters, s.spec, forbidden, movesOf(s.record), in.Now)
		if len(targetsIn(s.spec.Clusters, forbidden)) == 0 && len(s.back.Stable) == 0 {
			return nil
		}
	}
	return in.Clusters.meant(s.request(in.Peers))
}

// AsksAnyway is Asks for a binding that is decided although nothing is due.
func AsksAnyway(b workv1alpha2.Binding, in Situation, _ Options) []string {
	if !CapacityMatters(b.BindingSpec()) {
		return nil
	}
	return in.Clusters.meant(RequestOf(b, in.Peers))
}

// meant returns the clusters that a term of the request selects, and those that it runs in.
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
