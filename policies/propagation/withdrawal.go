package propagation

import (
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Withdrawal is what an edit of a policy takes out of clusters, and why that looks like a mistake.
type Withdrawal struct {
	// Clusters are those of the fleet that the policy meant before and does not mean any more, sorted.
	Clusters []string
	// Mistake says what looks wrong about it, such as "clusterNames names wst, which does not exist (did
	// you mean west?)"; empty where nothing does.
	Mistake string
}

// Withdrawn compares what two versions of a policy mean among the clusters of a fleet. To leave a cluster
// is no mistake, but together with a new name that no cluster has, and to leave the last one.
func Withdrawn(before, after *policyv1alpha1.PropagationSpec, fleet []*clusterv1alpha1.Cluster) Withdrawal {
	var out Withdrawal
	var names []string
	stays := false
	for _, c := range fleet {
		names = append(names, c.Name)
		switch was, is := means(&before.Placement, c), means(&after.Placement, c); {
		case is:
			stays = true
		case was:
			out.Clusters = append(out.Clusters, c.Name)
		}
	}
	if slices.Sort(out.Clusters); len(out.Clusters) == 0 {
		return Withdrawal{}
	}
	known := NamedClusters(before)
	strangers := slices.DeleteFunc(Strangers(after, names), func(s Stranger) bool { return slices.Contains(known, s.Name) })
	switch {
	case len(strangers) > 0:
		out.Mistake = Naming(strangers)
	case !stays:
		out.Mistake = "it means no cluster of the fleet any more"
	}
	return out
}

// means reports whether a placement, in any of its terms, means a cluster.
func means(p *policyv1alpha1.Placement, c *clusterv1alpha1.Cluster) bool {
	if len(p.ClusterAffinities) == 0 {
		return selector.Cluster(c, p.ClusterAffinity)
	}
	return slices.ContainsFunc(p.ClusterAffinities, func(term policyv1alpha1.ClusterAffinityTerm) bool {
		return selector.Cluster(c, &term.ClusterAffinity)
	})
}
