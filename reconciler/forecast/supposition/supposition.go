// Package supposition plans a fleet to whose clusters something happens besides a change of files.
//
// In go a fleet as it is, the events that are supposed, and by what policies lost clusters get taints; out come the fleet before and after,
// both decided by the failover rules in force, and what a comparison of the two says of it. It does no I/O.
package supposition

import (
	"slices"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/taints"
	"github.com/flotilla-io/flotilla/policies/whatif"
)

// Supposition is what happens to clusters. The zero value is nothing. Use Of.
type Supposition struct {
	events []whatif.Event
	// clusters are all there are once it has happened.
	clusters []*clusterv1alpha1.Cluster
	// notes are what is to be said of how it was found out.
	notes []string
}

// Of supposes events. policies are those by which clusters that are lost get taints; nil for those of a new control plane, as they are not
// known. Errors are those of whatif.Fleet.
func Of(fleet plan.FleetInput, events []whatif.Event, policies []policyv1alpha1.ClusterTaintPolicy) (Supposition, error) {
	if len(events) == 0 {
		return Supposition{}, nil
	}
	out := Supposition{events: events}
	if policies == nil {
		policies = []policyv1alpha1.ClusterTaintPolicy{*taints.Lost()}
		if slices.ContainsFunc(events, whatif.Event.Loses) {
			out.notes = []string{"the ClusterTaintPolicies of the fleet are not known: those of a new control plane are assumed"}
		}
	}
	var err error
	out.clusters, err = whatif.Fleet{Clusters: fleet.Clusters, Policies: policies, Now: fleet.Now}.After(events)
	return out, err
}

// Before returns the fleet to compare with. Both sides are decided by the failover rules in force, and each decision leaves less room for the
// next one: without events a plan knows of neither.
func (s Supposition) Before(in plan.FleetInput) plan.FleetInput {
	if len(s.events) == 0 {
		return in
	}
	in.Reserves, in.Scheduling.Failover = true, whatif.RulesIn(in.Bindings)
	return in
}

// After returns a fleet once what is supposed has happened to its clusters.
func (s Supposition) After(in plan.FleetInput) plan.FleetInput {
	if len(s.events) == 0 {
		return in
	}
	in.Clusters, in.Reported = s.clusters, nil
	for _, e := range s.events {
		in.Reported = append(in.Reported, e.Cluster())
	}
	return in
}

// Describe adds to the input of a comparison what is supposed, and what there is to say of it.
func (s Supposition) Describe(in *comparison.Input) {
	if len(s.events) == 0 {
		return
	}
	for _, e := range s.events {
		in.WhatIf = append(in.WhatIf, e.String())
	}
	in.Supposed = whatif.Says(s.events)
	outcome := whatif.Outcome{Events: s.events, Clusters: s.clusters, Rules: in.Head.Fleet.Scheduling.Failover, Bindings: bindingsOf(in.Head.Plans), Now: in.Head.Fleet.Now}
	in.Notes = slices.Concat(s.notes, outcome.Notes())
}

func bindingsOf(plans []plan.TemplatePlan) []workv1alpha2.Binding {
	var out []workv1alpha2.Binding
	for i := range plans {
		if b := plans[i].Binding; b != nil {
			out = append(out, b)
		}
	}
	return out
}
