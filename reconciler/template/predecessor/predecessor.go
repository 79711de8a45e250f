// Package predecessor finds the clusters that have yet to remove an earlier template of the same name.
//
// In goes the binding that is about to be created; out come the clusters in which it may be placed although they are
// not ready. They still run what is wanted again. If they were left out, they would remove it as soon as they answer,
// and get it back only once they count as ready: an outage for nothing. The package reads caches, and never writes.
package predecessor

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// Clusters returns, sorted, the clusters that a placement selects, that are not ready, and that have yet to remove what the
// previous binding of the same name placed there. hub reads from a cache. Replicas are not set.
func Clusters(ctx context.Context, hub client.Reader, binding client.ObjectKey, placement *policyv1alpha1.Placement) ([]workv1alpha2.TargetCluster, error) {
	var works workv1alpha1.WorkList
	if err := hub.List(ctx, &works, client.MatchingFields{bindings.WorksByOwner: binding.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("find the works of the binding that was: %w", err)
	}
	var names []string
	for i := range works.Items {
		if name, ok := workv1alpha2.ClusterOfExecutionNamespace(works.Items[i].Namespace); ok && works.Items[i].DeletionTimestamp != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []workv1alpha2.TargetCluster
	for _, name := range slices.Compact(names) {
		c := &clusterv1alpha1.Cluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read cluster %s: %w", name, err)
			}
			continue
		}
		if c.DeletionTimestamp == nil && !apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) && means(placement, c) {
			out = append(out, workv1alpha2.TargetCluster{Name: name})
		}
	}
	return out, nil
}

// means reports whether any term of a placement selects a cluster.
func means(p *policyv1alpha1.Placement, c *clusterv1alpha1.Cluster) bool {
	if len(p.ClusterAffinities) == 0 {
		return selector.Cluster(c, p.ClusterAffinity)
	}
	return slices.ContainsFunc(p.ClusterAffinities, func(term policyv1alpha1.ClusterAffinityTerm) bool {
		return selector.Cluster(c, &term.ClusterAffinity)
	})
}
