package override

import (
	"cmp"
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Selects reports whether o applies to r on some cluster.
func Selects(o policyv1alpha1.Override, r selector.Resource) bool {
	return specificity(o, r) != selector.None
}

// specificity is that of the best selector; a policy without selectors means
// every resource that it reaches.
func specificity(o policyv1alpha1.Override, r selector.Resource) selector.Specificity {
	switch {
	case !reaches(o, r):
		return selector.None
	case len(o.OverrideSpec().ResourceSelectors) == 0:
		return selector.All
	default:
		return selector.Best(o.OverrideSpec().ResourceSelectors, r)
	}
}

// reaches reports whether o is in force where r is.
func reaches(o policyv1alpha1.Override, r selector.Resource) bool {
	ns := o.GetNamespace()
	return o.GetDeletionTimestamp() == nil && (ns == "" || ns == r.Namespace)
}

// Sorted returns those of the overrides that apply to r, in the order in which
// they are applied: cluster-wide ones before namespaced ones, less specific
// ones before more specific ones, then by name. What comes later wins. An
// override that is being deleted does not apply any more.
func Sorted(overrides []policyv1alpha1.Override, r selector.Resource) []policyv1alpha1.Override {
	var found []ranked
	for _, o := range overrides {
		if s := specificity(o, r); s != selector.None {
			found = append(found, ranked{o, s})
		}
	}
	return inOrder(found)
}

// ranked is an override that means a resource.
type ranked struct {
	policyv1alpha1.Override
	specificity selector.Specificity
}

func inOrder(found []ranked) []policyv1alpha1.Override {
	slices.SortStableFunc(found, func(a, b ranked) int {
		return cmp.Or(
			cmp.Compare(scope(a), scope(b)),
			cmp.Compare(a.specificity, b.specificity),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	out := make([]policyv1alpha1.Override, len(found))
	for i := range found {
		out[i] = found[i].Override
	}
	return out
}

func scope(o policyv1alpha1.Override) int { return min(len(o.GetNamespace()), 1) }

// Means reports whether a rule of o picks c.
func Means(o policyv1alpha1.Override, c *clusterv1alpha1.Cluster) bool {
	rules, _ := rulesOf(o)
	return slices.ContainsFunc(rules, func(r policyv1alpha1.RuleWithCluster) bool { return selector.Cluster(c, r.TargetCluster) })
}

// Regroups reports whether another set of o's rules picks a cluster after it
// changed than before.
func Regroups(o policyv1alpha1.Override, before, after *clusterv1alpha1.Cluster) bool {
	rules, _ := rulesOf(o)
	return slices.ContainsFunc(rules, func(r policyv1alpha1.RuleWithCluster) bool {
		return selector.Cluster(before, r.TargetCluster) != selector.Cluster(after, r.TargetCluster)
	})
}

// NamedClusters are those that rules of o mean by name, sorted.
func NamedClusters(o policyv1alpha1.Override) []string {
	var names []string
	rules, _ := rulesOf(o)
	for i := range rules {
		if target := rules[i].TargetCluster; target != nil {
			names = append(names, target.ClusterNames...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ExcludedClusters are those that rules of o exclude by name, sorted.
func ExcludedClusters(o policyv1alpha1.Override) []string {
	var names []string
	rules, _ := rulesOf(o)
	for i := range rules {
		if target := rules[i].TargetCluster; target != nil {
			names = append(names, target.ExcludeClusters...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
