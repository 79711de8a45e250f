package riskyedit

import (
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Loss is what an edit takes out of clusters, and why that looks like a mistake.
type Loss struct {
	// Clusters are those of the fleet that the policy meant before and does not mean any more, sorted.
	Clusters []string
	// Divided are further ones, in which it leaves no replicas to what it divides, sorted.
	Divided []string
	// Mistake says what looks wrong about it, such as "clusterNames names wst, which does not exist (did
	// you mean west?)"; empty where nothing does.
	Mistake string
	// Unknown says that the mistake is to ask for what no cluster has: a name, a label, a place.
	Unknown bool
}

// In reports whether what has replicas, or has none, is lost in a cluster.
func (l Loss) In(cluster string, replicas bool) bool {
	return slices.Contains(l.Clusters, cluster) || replicas && slices.Contains(l.Divided, cluster)
}

// Propagation compares what two policies mean for what both of them carry, the second after the first.
func Propagation(before, after *policyv1alpha1.PropagationSpec, fleet []*clusterv1alpha1.Cluster) Loss {
	var out Loss
	stays := false
	was, is := meaningOf(&before.Placement, fleet), meaningOf(&after.Placement, fleet)
	for _, c := range fleet {
		switch stays = stays || is.all[c.Name]; {
		case was.all[c.Name] && !is.all[c.Name]:
			out.Clusters = append(out.Clusters, c.Name)
		case was.divided[c.Name] && !is.divided[c.Name]:
			out.Divided = append(out.Divided, c.Name)
		}
	}
	if len(out.Clusters)+len(out.Divided) == 0 {
		return Loss{}
	}
	slices.Sort(out.Clusters)
	slices.Sort(out.Divided)
	known := propagation.NamedClusters(before)
	strangers := slices.DeleteFunc(propagation.Strangers(after, names(fleet)), func(s propagation.Stranger) bool { return slices.Contains(known, s.Name) })
	vacant := newlyVacant(affinities(before), affinities(after), fleet)
	switch {
	case len(strangers) > 0:
		out.Mistake, out.Unknown = propagation.Naming(strangers), true
	case len(vacant) > 0:
		out.Mistake, out.Unknown = vacant[0], true
	case !stays:
		out.Mistake = "it means no cluster of the fleet any more"
	}
	return out
}

// Suspect reports whether a policy asks for anything that no cluster has, or for no cluster at all. One that
// does not takes nothing away by mistake, whatever was there before.
func Suspect(spec *policyv1alpha1.PropagationSpec, fleet []*clusterv1alpha1.Cluster) bool {
	if len(propagation.Strangers(spec, names(fleet))) > 0 || len(newlyVacant(nil, affinities(spec), fleet)) > 0 {
		return true
	}
	reach := meaningOf(&spec.Placement, fleet)
	return !slices.ContainsFunc(fleet, func(c *clusterv1alpha1.Cluster) bool { return reach.all[c.Name] })
}

func names(fleet []*clusterv1alpha1.Cluster) []string {
	out := make([]string, 0, len(fleet))
	for _, c := range fleet {
		out = append(out, c.Name)
	}
	return out
}

// affinities are all by which a policy asks for clusters.
func affinities(spec *policyv1alpha1.PropagationSpec) []*policyv1alpha1.ClusterAffinity {
	var out []*policyv1alpha1.ClusterAffinity
	if a := spec.Placement.ClusterAffinity; a != nil {
		out = append(out, a)
	}
	for i := range spec.Placement.ClusterAffinities {
		out = append(out, &spec.Placement.ClusterAffinities[i].ClusterAffinity)
	}
	for i := range fixed(&spec.Placement) {
		out = append(out, &spec.Placement.ReplicaScheduling.WeightPreference.StaticWeightList[i].TargetCluster)
	}
	return out
}

// reach is which clusters a placement means, in any of its terms, and of these those that get a share of
// what is divided.
type reach struct{ all, divided map[string]bool }

func meaningOf(p *policyv1alpha1.Placement, fleet []*clusterv1alpha1.Cluster) reach {
	out := reach{all: map[string]bool{}, divided: map[string]bool{}}
	for _, c := range fleet {
		if !means(p, c) {
			continue
		}
		out.all[c.Name] = true
		if weighs(fixed(p), c) {
			out.divided[c.Name] = true
		}
	}
	if len(out.divided) == 0 {
		out.divided = out.all // clusters that all weigh nothing weigh the same
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

// fixed are the weights by which replicas are divided; none where other things decide.
func fixed(p *policyv1alpha1.Placement) []policyv1alpha1.StaticClusterWeight {
	r := p.ReplicaScheduling
	if !replicas.Static(r) || r.WeightPreference == nil {
		return nil
	}
	return r.WeightPreference.StaticWeightList
}

// weighs reports whether a cluster gets a share by fixed weights.
func weighs(weights []policyv1alpha1.StaticClusterWeight, c *clusterv1alpha1.Cluster) bool {
	return len(weights) == 0 || slices.ContainsFunc(weights, func(w policyv1alpha1.StaticClusterWeight) bool {
		return w.Weight > 0 && selector.Cluster(c, &w.TargetCluster)
	})
}
