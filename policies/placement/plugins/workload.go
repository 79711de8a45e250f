package plugins

import "github.com/flotilla-io/flotilla/policies/placement/framework"

// WorkloadAffinity refuses clusters that do not run all others of the group that
// the workload wants to be with; those that run nowhere yet do not count. A
// workload stays where it runs, whoever leaves.
type WorkloadAffinity struct{}

// Name implements framework.Plugin.
func (WorkloadAffinity) Name() string { return "WorkloadAffinity" }

// Filter implements framework.Filter.
func (WorkloadAffinity) Filter(req *framework.Request, c *framework.Cluster) string {
	groups := req.Spec.WorkloadAffinityGroups
	if groups == nil || groups.AffinityGroup == "" || req.Peers.Together(c.Name) || req.Targets(c.Name) {
		return ""
	}
	return "cluster(s) did not run all workloads of affinity group " + groups.AffinityGroup
}

// WorkloadAntiAffinity refuses clusters that run another one of the group that
// the workload wants to be apart from. A workload stays where it runs, whoever
// comes.
type WorkloadAntiAffinity struct{}

// Name implements framework.Plugin.
func (WorkloadAntiAffinity) Name() string { return "WorkloadAntiAffinity" }

// Filter implements framework.Filter.
func (WorkloadAntiAffinity) Filter(req *framework.Request, c *framework.Cluster) string {
	groups := req.Spec.WorkloadAffinityGroups
	if groups == nil || groups.AntiAffinityGroup == "" || req.Peers.Apart(c.Name) || req.Targets(c.Name) {
		return ""
	}
	return "cluster(s) ran workloads of anti-affinity group " + groups.AntiAffinityGroup
}
