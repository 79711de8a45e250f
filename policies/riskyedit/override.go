package riskyedit

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Override compares in which clusters two versions of an override policy change the same. What is lost is
// what it changes there. A rule that goes is no mistake.
func Override(before, after *policyv1alpha1.OverrideSpec, fleet []*clusterv1alpha1.Cluster) Loss {
	var out Loss
	was := rules(before)
	for i, is := range rules(after) {
		at := slices.IndexFunc(was, func(r policyv1alpha1.RuleWithCluster) bool {
			return equality.Semantic.DeepEqual(r.Overriders, is.Overriders)
		})
		if at < 0 && i < len(was) {
			at = i // what it changes is changed as well
		}
		if at < 0 {
			continue
		}
		lost, mistake := left(orAll(was[at].TargetCluster), orAll(is.TargetCluster), fleet)
		if out.Clusters = append(out.Clusters, lost...); out.Mistake == "" {
			out.Mistake, out.Unknown = mistake, mistake != ""
		}
	}
	slices.Sort(out.Clusters)
	out.Clusters = slices.Compact(out.Clusters)
	return out
}

// Does reports whether an override changes the same as another one does in each of the clusters.
func Does(spec, other *policyv1alpha1.OverrideSpec, clusters []string, fleet []*clusterv1alpha1.Cluster) bool {
	for _, name := range clusters {
		cluster := named(fleet, name)
		if cluster == nil || !slices.ContainsFunc(rules(other), func(was policyv1alpha1.RuleWithCluster) bool {
			return selector.Cluster(cluster, orAll(was.TargetCluster)) && slices.ContainsFunc(rules(spec), func(is policyv1alpha1.RuleWithCluster) bool {
				return selector.Cluster(cluster, orAll(is.TargetCluster)) && equality.Semantic.DeepEqual(was.Overriders, is.Overriders)
			})
		}) {
			return false
		}
	}
	return true
}

// left returns the clusters that a rule leaves, and what looks wrong about it.
func left(was, is *policyv1alpha1.ClusterAffinity, fleet []*clusterv1alpha1.Cluster) (clusters []string, mistake string) {
	for _, c := range fleet {
		if selector.Cluster(c, was) && !selector.Cluster(c, is) {
			clusters = append(clusters, c.Name)
		}
	}
	if len(clusters) == 0 {
		return nil, ""
	}
	isNew := slices.DeleteFunc(slices.Clone(is.ClusterNames), func(name string) bool { return slices.Contains(was.ClusterNames, name) })
	if strangers := propagation.StrangersAmong(isNew, names(fleet)); len(strangers) > 0 {
		return clusters, propagation.Naming(strangers)
	}
	if vacant := newlyVacant([]*policyv1alpha1.ClusterAffinity{was}, []*policyv1alpha1.ClusterAffinity{is}, fleet); len(vacant) > 0 {
		return clusters, vacant[0]
	}
	return clusters, ""
}

// rules are those of an override, also of one that is written as they were once.
func rules(spec *policyv1alpha1.OverrideSpec) []policyv1alpha1.RuleWithCluster {
	if len(spec.OverrideRules) > 0 {
		return spec.OverrideRules
	}
	return []policyv1alpha1.RuleWithCluster{{TargetCluster: spec.TargetCluster, Overriders: spec.Overriders}}
}

func orAll(a *policyv1alpha1.ClusterAffinity) *policyv1alpha1.ClusterAffinity {
	if a == nil {
		return &policyv1alpha1.ClusterAffinity{}
	}
	return a
}
