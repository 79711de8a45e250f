package plugins

import (
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// All returns the built-in plugins in the order in which they are asked.
func All() []framework.Plugin {
	return []framework.Plugin{
		APIEnablement{}, TaintToleration{}, ClusterAffinity{}, SpreadConstraint{}, ClusterEviction{},
		WorkloadAntiAffinity{}, WorkloadAffinity{}, ClusterLocality{},
	}
}

// APIEnablement refuses clusters that are not known to serve the resource's
// API. Clusters that run it already are kept.
type APIEnablement struct{}

// Name implements framework.Plugin.
func (APIEnablement) Name() string { return "APIEnablement" }

// Filter implements framework.Filter.
func (APIEnablement) Filter(req *framework.Request, c *framework.Cluster) string {
	ref := &req.Spec.Resource
	if c.API(ref.APIVersion, ref.Kind) == clusterv1alpha1.APIEnabled || req.Targets(c.Name) {
		return ""
	}
	return "cluster(s) did not have the API resource"
}

// TaintToleration refuses clusters with a taint that the placement does not
// tolerate. Clusters that run the resource already are kept.
type TaintToleration struct{}

// Name implements framework.Plugin.
func (TaintToleration) Name() string { return "TaintToleration" }

// Filter implements framework.Filter.
func (TaintToleration) Filter(req *framework.Request, c *framework.Cluster) string {
	if len(c.Barring) == 0 || req.Targets(c.Name) {
		return ""
	}
	for i := range c.Barring {
		if !failover.Tolerates(&c.Barring[i].Taint, req.Placement.ClusterTolerations) {
			return c.Barring[i].Reason
		}
	}
	return ""
}

// ClusterAffinity refuses clusters that neither the affinity in force nor one
// of its overflow affinities means.
type ClusterAffinity struct{}

// Name implements framework.Plugin.
func (ClusterAffinity) Name() string { return "ClusterAffinity" }

// Filter implements framework.Filter.
func (ClusterAffinity) Filter(req *framework.Request, c *framework.Cluster) string {
	if req.Affinity.Matches(c.Cluster) {
		return ""
	}
	for _, o := range req.Overflow {
		if o.Matches(c.Cluster) {
			return ""
		}
	}
	return "cluster(s) did not match the placement cluster affinity constraint"
}

// Score implements framework.Score: affinity refuses, it does not prefer.
func (ClusterAffinity) Score(*framework.Request, *framework.Cluster) int64 { return 0 }

// SpreadConstraint refuses clusters that lack the property or the label by which
// the placement is spread.
type SpreadConstraint struct{}

// Name implements framework.Plugin.
func (SpreadConstraint) Name() string { return "SpreadConstraint" }

// Filter implements framework.Filter.
func (SpreadConstraint) Filter(req *framework.Request, c *framework.Cluster) string {
	for i := range req.Placement.SpreadConstraints {
		by, err := framework.GroupingOf(&req.Placement.SpreadConstraints[i])
		if err != nil || by.Has(c) {
			continue // an error is that of the placement, not of the cluster
		}
		switch by.Field {
		case policyv1alpha1.SpreadByFieldProvider:
			return "cluster(s) did not have provider property"
		case policyv1alpha1.SpreadByFieldRegion:
			return "cluster(s) did not have region property"
		case policyv1alpha1.SpreadByFieldZone:
			return "cluster(s) did not have zones property"
		default:
			return "cluster(s) did not have label " + by.Label
		}
	}
	return ""
}

// ClusterEviction refuses clusters that the resource is to be moved away from, and those
// that others than the scheduler have it moved away from. Where it is placed still, as it has no other place, it may stay.
type ClusterEviction struct{}

// Name implements framework.Plugin.
func (ClusterEviction) Name() string { return "ClusterEviction" }

// Filter implements framework.Filter.
func (ClusterEviction) Filter(req *framework.Request, c *framework.Cluster) string {
	if why, barred := req.Barred[c.Name]; barred {
		return "cluster(s) had " + why
	}
	for i := range req.Spec.GracefulEvictionTasks {
		task := &req.Spec.GracefulEvictionTasks[i]
		if task.FromCluster == c.Name && !req.Returns[c.Name] && task.Producer != workv1alpha2.EvictionProducerScheduler && !req.Targets(c.Name) {
			return "cluster(s) is in the process of eviction"
		}
	}
	return ""
}

// ClusterLocality prefers clusters that run the resource already, and more so those that it is
// brought back to.
type ClusterLocality struct{}

// Name implements framework.Plugin.
func (ClusterLocality) Name() string { return "ClusterLocality" }

// Score implements framework.Score.
func (ClusterLocality) Score(req *framework.Request, c *framework.Cluster) int64 {
	switch {
	case slices.Contains(req.Home, c.Name):
		return framework.MaxScore
	case req.Targets(c.Name) && len(req.Home) > 0:
		return framework.MaxScore / 2
	case req.Targets(c.Name):
		return framework.MaxScore
	default:
		return 0
	}
}
