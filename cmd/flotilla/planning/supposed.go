package planning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/taints"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
	"github.com/flotilla-io/flotilla/policies/whatif"
)

// supposed is what happens to clusters besides a change of files. The zero value is nothing.
type supposed struct {
	events []whatif.Event
	// clusters are all there are once it has happened.
	clusters []*clusterv1alpha1.Cluster
	// notes are what is to be said of how it was found out.
	notes []string
}

// suppose has events happen to the fleet. Both sides of the comparison are decided by the failover rules in force from then on,
// and each decision leaves less room for the next one: without events a plan knows of neither.
func (w *world) suppose(ctx context.Context, events []whatif.Event) error {
	if len(events) == 0 {
		return nil
	}
	for i, e := range events {
		if e.File() == "" {
			continue
		}
		c, err := manifest(e.File())
		if err != nil {
			return command.Usage(err)
		}
		events[i] = e.Joining(c)
	}
	w.supposed.events = events
	policies, err := w.taintPolicies(ctx)
	if err != nil {
		return err
	}
	w.supposed.clusters, err = whatif.Fleet{Clusters: w.fleet.Clusters, Policies: policies, Now: w.fleet.Now}.After(events)
	if unknown := (*whatif.UnknownError)(nil); errors.As(err, &unknown) {
		return command.Usage(fleet.NoClusterAmong(unknown.Name, unknown.Clusters))
	}
	if err != nil {
		return command.Usage(err)
	}
	w.fleet.Reserves, w.fleet.Scheduling.Failover = true, whatif.RulesIn(w.fleet.Bindings)
	if w.hub == nil {
		w.fleet.Scheduling.Failover.State = false // a file has no status of what runs
	}
	return nil
}

// taintPolicies returns by what policies clusters that are lost get taints.
func (w *world) taintPolicies(ctx context.Context) ([]policyv1alpha1.ClusterTaintPolicy, error) {
	if w.hub != nil {
		if err := w.snapshot.ReadTaints(ctx, w.hub); err != nil {
			return nil, err
		}
	}
	if w.snapshot.Policies.Taints != nil {
		return w.snapshot.Policies.Taints, nil
	}
	if slices.ContainsFunc(w.supposed.events, whatif.Event.Loses) {
		w.supposed.notes = append(w.supposed.notes, "the ClusterTaintPolicies of the fleet are not known: those of a new control plane are assumed")
	}
	return []policyv1alpha1.ClusterTaintPolicy{*taints.Lost()}, nil
}

// mostManifest is how large the manifest of a cluster may be, in bytes.
const mostManifest = 10 << 20

// manifest reads the Cluster of a file.
func manifest(path string) (*clusterv1alpha1.Cluster, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > mostManifest:
		return nil, fmt.Errorf("%s is no file with the manifest of a Cluster", path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &clusterv1alpha1.Cluster{}
	if err := yaml.UnmarshalStrict(content, c); err != nil {
		return nil, fmt.Errorf("%s is no manifest of a Cluster: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	if c.Kind != clusterv1alpha1.ResourceKindCluster || c.GroupVersionKind().Group != clusterv1alpha1.GroupName {
		return nil, fmt.Errorf("%s is no manifest of a Cluster, but of a %q of %q", path, c.Kind, c.APIVersion)
	}
	if wrong := syntax.ClusterName(c.Name, field.NewPath("metadata", "name")); len(wrong) > 0 {
		return nil, fmt.Errorf("%s: %w", path, wrong[0])
	}
	return c, nil
}

// after returns a fleet once what is supposed has happened to its clusters.
func (s supposed) after(in plan.FleetInput) plan.FleetInput {
	if len(s.events) == 0 {
		return in
	}
	in.Clusters, in.Reported = s.clusters, nil
	for _, e := range s.events {
		in.Reported = append(in.Reported, e.Cluster())
	}
	return in
}

// describe adds to the input of a comparison what is supposed, and what there is to say of it.
func (s supposed) describe(in *comparison.Input) {
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

// completeEvent offers names of clusters, and after one what may happen to it.
func (f *planFlags) completeEvent(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	given := ""
	if i := strings.LastIndexByte(word, ','); i >= 0 {
		given, word = word[:i+1], word[i+1:]
	}
	name, verb, named := strings.Cut(word, ":")
	if named && name == "add" {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var offers []string
	if named {
		for _, v := range whatif.Verbs() {
			if strings.HasPrefix(v, verb) {
				offers = append(offers, given+name+":"+v)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	clusters, _ := f.hub.CompleteClusters(cmd, args, word)
	for _, c := range append(clusters, "add") {
		if strings.HasPrefix(c, word) {
			offers = append(offers, given+c+":")
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
