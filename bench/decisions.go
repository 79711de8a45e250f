package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/clusters"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// strategy is a way to place.
type strategy struct {
	name      string
	placement policyv1alpha1.Placement
}

// strategies are those that users have.
func strategies() []strategy {
	return []strategy{
		{"duplicated", policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated,
		}}},
		{"static weights", policyv1alpha1.Placement{ReplicaScheduling: staticWeights(3, 2, 1)}},
		{"dynamic weight", policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight()}},
		{"aggregated", policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
		}}},
		{"spread by region", policyv1alpha1.Placement{
			SpreadConstraints: []policyv1alpha1.SpreadConstraint{
				{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 2, MaxGroups: 3},
				{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 4, MaxGroups: 8},
			},
			ReplicaScheduling: dynamicWeight(),
		}},
	}
}

// staticWeights weighs clusters by their tier: the first weight is gold's.
func staticWeights(weights ...int64) *policyv1alpha1.ReplicaSchedulingStrategy {
	list := make([]policyv1alpha1.StaticClusterWeight, len(weights))
	for i, weight := range weights {
		list[i] = policyv1alpha1.StaticClusterWeight{Weight: weight, TargetCluster: ofTier(clusters.Tiers[i])}
	}
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference:          &policyv1alpha1.ClusterPreferences{StaticWeightList: list},
	}
}

func dynamicWeight() *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference:          &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}
}

func ofTier(tier string) policyv1alpha1.ClusterAffinity {
	return policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}}
}

// newBinding is a binding that was never placed.
func newBinding(i int, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	name := fmt.Sprintf("web-%d", i)
	const replicas = 30
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-deployment", UID: types.UID(name), Generation: 1,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "the-policy"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name, UID: types.UID(name)},
			Replicas: replicas,
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			}},
			Placement: &p,
		},
	}
}

// decisions counts the placements that can be decided per second, and what each
// of them allocates, by what decides for the loops: with what was promised to
// others, and the commit that may have to be repeated.
func decisions(ctx context.Context, b *bench, r *results.Report) error {
	hub := remembered(clusters.Many(b.clusters))
	for _, s := range strategies() {
		fresh := make([]*workv1alpha2.ResourceBinding, 1000)
		for i := range fresh {
			fresh[i] = newBinding(i, s.placement)
		}
		decider := decider.New(hub, decider.Options{})
		decide := func(i int) error {
			d, changed, err := decider.Decide(ctx, fresh[i%len(fresh)])
			if err != nil || !changed || d.Err != nil || len(d.Clusters) == 0 {
				return fmt.Errorf("%s places a binding nowhere: %w", s.name, errors.Join(err, d.Err))
			}
			return nil
		}
		cost, err := allocations(fresh, decide)
		if err != nil {
			return err
		}
		rate, err := perSecond(ctx, decide)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("decisions in memory, %d clusters, %s", b.clusters, s.name)
		r.AtLeast("7", what, rate, "decisions/s", 1000)
		r.AtMost("7", what+": allocated for each", cost.kib, "KiB", 100)
		r.Note("7", what+": allocations for each", cost.count, "allocations")
	}
	return nil
}

// remembered is a cache of clusters, in which there are no bindings.
type remembered []*clusterv1alpha1.Cluster

// Get finds nothing.
func (remembered) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return fmt.Errorf("%s is not remembered", key)
}

// List lists the clusters, and nothing of any other kind.
func (c remembered) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if clusters, ok := list.(*clusterv1alpha1.ClusterList); ok {
		for _, cluster := range c {
			clusters.Items = append(clusters.Items, *cluster)
		}
	}
	return nil
}

// allocated is what one decision allocates.
type allocated struct{ kib, count float64 }

// allocations decides for each binding once, alone.
func allocations(fresh []*workv1alpha2.ResourceBinding, decide func(i int) error) (allocated, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range fresh {
		if err := decide(i); err != nil {
			return allocated{}, err
		}
	}
	runtime.ReadMemStats(&after)
	n := float64(len(fresh))
	return allocated{float64(after.TotalAlloc-before.TotalAlloc) / 1024 / n, float64(after.Mallocs-before.Mallocs) / n}, nil
}

// perSecond decides on all cores for a while and returns the rate.
func perSecond(ctx context.Context, decide func(i int) error) (float64, error) {
	const span = 2 * time.Second
	var made atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for time.Since(begin) < span {
				if err := decide(int(made.Add(1))); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return float64(made.Load()) / time.Since(begin).Seconds(), err
}
