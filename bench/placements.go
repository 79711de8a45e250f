package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/clusters"
	"github.com/flotilla-io/flotilla/bench/firsts"
	"github.com/flotilla-io/flotilla/bench/results"
)

// placements counts the placements that are decided and stored per second, with
// no other loops than those that decide.
func placements(ctx context.Context, b *bench, r *results.Report) error {
	p := placing{bench: b, report: r, loops: "template+scheduler", n: b.placed, goal: true}
	return p.run(ctx)
}

// placementsByAll does the same with all loops: what is placed becomes Works.
func placementsByAll(ctx context.Context, b *bench, r *results.Report) error {
	p := placing{bench: b, report: r, loops: "all loops, no members", n: b.placed / 4}
	return p.run(ctx)
}

// placing is one measurement of how fast placements are decided and stored.
type placing struct {
	*bench
	report *results.Report
	loops  string
	n      int  // Deployments
	goal   bool // the design's figure is judged by it

	policy *policyv1alpha1.PropagationPolicy
	seen   *firsts.Firsts
}

// placedGroup is the group of the Deployments that are placed.
const placedGroup = "placed"

func (p *placing) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := clusters.Many(p.clusters)
	if err := p.register(ctx, all); err != nil {
		return err
	}
	p.seen = firsts.New()
	err := follow(ctx, p.bench, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ResourceBindingList{}, p.see)
	if err != nil {
		return err
	}
	p.policy = policyFor(placedGroup)
	p.policy.Spec.Placement = policyv1alpha1.Placement{
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 3}},
		ReplicaScheduling: dynamicWeight(),
	}
	if err := p.hub.Create(ctx, p.policy); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	steps := []struct {
		name, seen string
		change     func(ctx context.Context) error
		measured   bool
	}{
		{"first placements, templates made meanwhile", byDynamicWeight, p.make, true},
		{"re-placed by an edit of the policy", byStaticWeight, p.reweigh, true},
		{"", onGold, p.gild, false},
		{"re-placed by a cluster's label", onOneMore, func(ctx context.Context) error { return p.promote(ctx, all[5]) }, true},
	}
	for _, s := range steps {
		if err := p.step(ctx, s.name, s.seen, s.change, s.measured); err != nil {
			return err
		}
	}
	return nil
}

// What is seen of a binding, one after the other.
const (
	byDynamicWeight = "a placement by dynamic weight"
	byStaticWeight  = "a placement by static weights"
	onGold          = "a placement on gold clusters"
	onOneMore       = "a placement on one more cluster"
)

// goldClusters are those of one region that are gold, in a hundred: every
// twentieth.
func (p *placing) goldClusters() int { return (p.clusters + 19) / 20 }

func (p *placing) see(b *workv1alpha2.ResourceBinding) {
	applied := b.Annotations[policyv1alpha1.PolicyPlacementAnnotation]
	switch {
	case len(b.Spec.Clusters) == 0:
	case strings.Contains(applied, string(policyv1alpha1.DynamicWeightByAvailableReplicas)):
		p.seen.See(byDynamicWeight, b.Name)
	case strings.Contains(applied, "staticWeightList"):
		p.seen.See(byStaticWeight, b.Name)
	case len(b.Spec.Clusters) > p.goldClusters():
		p.seen.See(onOneMore, b.Name)
	default:
		p.seen.See(onGold, b.Name)
	}
}

// step makes a change and waits until it is seen of every binding.
func (p *placing) step(ctx context.Context, name, seen string, change func(context.Context) error, measured bool) error {
	if _, err := p.quiet(ctx, 2*time.Second); err != nil {
		return err
	}
	before, err := p.count(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := change(ctx); err != nil {
		return err
	}
	answered := time.Since(begin)
	last, err := p.seen.All(ctx, seen, p.n, 3*time.Minute)
	if err != nil || !measured {
		return err
	}
	if _, err := p.quiet(ctx, 2*time.Second); err != nil {
		return err
	}
	after, err := p.count(ctx)
	if err != nil {
		return err
	}
	return p.record(name, answered, last.Sub(begin), after.since(before))
}

// record reports a step: how long the user's requests took, how long it was until
// the last binding was placed, and what that cost.
func (p *placing) record(name string, answered, took time.Duration, cost counters) error {
	what := fmt.Sprintf("persisted by %s: %s", p.loops, name)
	rate, n := float64(p.n)/took.Seconds(), float64(p.n)
	if p.goal {
		p.report.AtLeast("7", what, rate, "decisions/s", 300)
	} else {
		p.report.Note("7", what, rate, "decisions/s")
	}
	p.report.Note("7", what+", writes", float64(cost.Revision)/took.Seconds(), "writes/s")
	p.report.Note("7", what+", writes for each", float64(cost.Revision)/n, "writes")
	p.report.Note("7", what+", CPU time of the control plane for each", cost.CPU["control plane"]*1000/n, "ms")
	share, _ := cost.Requests.Conflicts()
	p.report.AtMost("3", what+", conflicts", share*100, "%", 0.1)
	file := strings.NewReplacer(" ", "-", ",", "", ":", "", "'", "").Replace(what)
	return p.report.Raw(file, map[string]any{
		"decisions": p.n, "answeredSeconds": answered.Seconds(), "placedSeconds": took.Seconds(), "counters": cost,
	})
}

// make creates the Deployments.
func (p *placing) make(ctx context.Context) error {
	return p.createMany(ctx, placedGroup, p.n, func(name, of string, paused bool) *appsv1.Deployment {
		d := deployment(name, of, paused)
		d.Spec.Replicas = ptr.To[int32](6)
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}
		return d
	})
}

func (p *placing) reweigh(ctx context.Context) error {
	return p.edit(ctx, policyv1alpha1.Placement{ReplicaScheduling: staticWeights(3, 2, 1)})
}

// gild places on the gold clusters of one region.
func (p *placing) gild(ctx context.Context) error {
	gold := ofTier(clusters.Tiers[0])
	gold.LabelSelector.MatchLabels["topology.kubernetes.io/region"] = clusters.Regions[0]
	return p.edit(ctx, policyv1alpha1.Placement{ClusterAffinity: &gold})
}

func (p *placing) edit(ctx context.Context, to policyv1alpha1.Placement) error {
	edited := p.policy.DeepCopy()
	edited.Spec.Placement = to
	if err := p.hub.Patch(ctx, edited, client.MergeFrom(p.policy)); err != nil {
		return fmt.Errorf("edit the policy: %w", err)
	}
	p.policy = edited
	return nil
}

// promote makes a cluster of that region a gold one.
func (p *placing) promote(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	promoted := c.DeepCopy()
	promoted.Labels["tier"] = clusters.Tiers[0]
	if err := p.hub.Patch(ctx, promoted, client.MergeFrom(c)); err != nil {
		return fmt.Errorf("label the cluster %s: %w", c.Name, err)
	}
	return nil
}

// register makes the clusters on the control plane, ready by their status.
func (b *bench) register(ctx context.Context, all []*clusterv1alpha1.Cluster) error {
	return sideBySide(ctx, len(all), func(ctx context.Context, i int) error {
		c := all[i]
		status := c.Status
		if err := b.hub.Create(ctx, c); err != nil {
			return fmt.Errorf("make the cluster %s: %w", c.Name, err)
		}
		before := c.DeepCopy()
		c.Status = status
		if err := b.hub.Status().Patch(ctx, c, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("make the cluster %s ready: %w", c.Name, err)
		}
		return nil
	})
}
