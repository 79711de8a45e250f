package reconciler

import (
	"slices"
	"time"

	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// Scheduling says how bindings are placed. The zero value is the default.
type Scheduling struct {
	// Name is the scheduler that the loops are: they place the bindings that name
	// it, and leave all others alone. Empty means default-scheduler.
	Name string
	// Plugins are asked after the built-in ones, in this order.
	Plugins []framework.Plugin
	// Enabled says which plugins are asked, own ones included: names, "*" for all,
	// and "-name" for all but that one. Empty means all.
	Enabled []string
	// KeepEmpty keeps chosen clusters that get no replicas.
	KeepEmpty bool
	// Failover says what is moved off clusters that fail.
	Failover Failover
	// Estimates says who is asked what fits in clusters.
	Estimates Estimates
	// Descheduling says when replicas that find no node run elsewhere.
	Descheduling Descheduling
	// Off are the areas that are switched off.
	Off Off
}

// Failover says what is moved off clusters that fail, and how. The zero value moves nothing.
type Failover struct {
	failover.Rules
	// Lost has a ClusterTaintPolicy made by which lost clusters are left.
	Lost bool
	// Rate is how many templates are moved in a second; zero is as many as there are, a
	// negative one is one in half an hour.
	Rate float64
	// Judging says for how long it is looked at how those fare, which the rate goes by.
	Judging failover.Judging
}

// Descheduling says when replicas that find no node in their cluster run elsewhere. The zero
// value is the default.
type Descheduling struct {
	// Interval is how often they are looked for; zero means two minutes.
	Interval time.Duration
	// Threshold is how long they must have waited; zero means five minutes.
	Threshold time.Duration
	// DryRun reports what would be moved, and moves nothing.
	DryRun bool
}

// Off names areas that are switched off.
type Off struct {
	// Preemption leaves every claim to the policy that holds it.
	Preemption bool
	// Priority leaves the priority of bindings out of account.
	Priority bool
	// WorkloadAffinity places bindings whatever groups they are in.
	WorkloadAffinity bool
	// Components takes workloads of several components for one whole.
	Components bool
	// Models estimates room without the sizes of nodes.
	Models bool
	// Dependencies takes nothing along that templates refer to.
	Dependencies bool
	// Quotas lets namespaces use more than their FederatedResourceQuotas allow.
	Quotas bool
	// MemberQuotas leaves the ResourceQuotas of members out of what fits there.
	MemberQuotas bool
	// Reservations leaves out of account what was placed and does not show yet.
	Reservations bool
}

// Check errs if a plugin that is named does not exist, or a name is taken.
func (s *Scheduling) Check() error {
	_, err := s.plugins()
	return err
}

// PluginNames lists all plugins, in the order in which they are asked.
func (s *Scheduling) PluginNames() []string {
	var names []string
	for _, p := range slices.Concat(plugins.All(), s.Plugins) {
		names = append(names, p.Name())
	}
	return names
}

// decisions returns the options of the decider.
func (s *Scheduling) decisions() (decider.Options, error) {
	active, err := s.plugins()
	if err != nil {
		return decider.Options{}, err
	}
	return decider.Options{
		Placement: placement.Options{
			SchedulerName: s.Name, Plugins: active, KeepEmpty: s.KeepEmpty, NoModels: s.Off.Models, NoComponents: s.Off.Components,
			Failover: s.Failover.Rules, LeastCapacity: s.Estimates.Least,
		},
		NoReservations: s.Off.Reservations,
	}, nil
}

// plugins returns those that are asked; never nil, which would mean all.
func (s *Scheduling) plugins() ([]framework.Plugin, error) {
	all := slices.Concat(plugins.All(), s.Plugins)
	if err := framework.Check(all, s.Enabled); err != nil {
		return nil, err
	}
	active := all
	if len(s.Enabled) > 0 {
		active = framework.Select(all, s.Enabled)
	}
	if s.Off.WorkloadAffinity {
		active = framework.Select(active, []string{"*", "-" + plugins.WorkloadAffinity{}.Name(), "-" + plugins.WorkloadAntiAffinity{}.Name()})
	}
	return active, nil
}
