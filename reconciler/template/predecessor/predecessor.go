// Package former finds where a template has yet to be removed that has the name of a new one.
//
// In goes the binding that is to be made; out come the clusters in which it may be placed although they are not ready:
// they have yet to remove what is wanted again by now. Without that they would remove it as soon as they answer, and get
// it back only once they count as ready. The package reads caches, and writes nothing.
package former

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

// Clusters returns the clusters that have yet to remove what the binding of a name placed there before, of those that a
// placement means and that are not ready, sorted. hub reads from a cache. How many replicas they have to
// remove is not told.
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

// means reports whether a placement, in any of its terms, means a cluster.
func means(p *policyv1alpha1.Placement, c *clusterv1alpha1.Cluster) bool {
	if len(p.ClusterAffinities) == 0 {
		return selector.Cluster(c, p.ClusterAffinity)
	}
	return slices.ContainsFunc(p.ClusterAffinities, func(term policyv1alpha1.ClusterAffinityTerm) bool {
		return selector.Cluster(c, &term.ClusterAffinity)
	})
}
