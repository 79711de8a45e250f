package health

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// asked is what policies and overrides ask of templates now. The health of a member's object counts only if binding and
// Works are up to date with that, as a policy or an override may have changed a moment ago.
type asked struct {
	*indexed
	clusters     map[string]*clusterv1alpha1.Cluster
	noPreemption bool
}

// lazily returns a function that computes asked once, when the first binding is judged: to read all
// overrides costs more than all the rest where no object has a binding.
func lazily(ctx context.Context, r *Reader, policies selection, fleet []clusterv1alpha1.Cluster) func() (asked, error) {
	return sync.OnceValues(func() (asked, error) { return askedBy(ctx, r, policies, fleet) })
}

// askedBy returns what these policies, and the overrides in the cache, ask of templates.
func askedBy(ctx context.Context, r *Reader, policies selection, fleet []clusterv1alpha1.Cluster) (asked, error) {
	overrides, err := r.overrides(ctx)
	if err != nil {
		return asked{}, err
	}
	out := asked{indexed: r.indexes.of(policies.policies, overrides, policies.skip), clusters: make(map[string]*clusterv1alpha1.Cluster, len(fleet)), noPreemption: r.NoPreemption}
	for i := range fleet {
		out.clusters[fleet[i].Name] = &fleet[i]
	}
	return out, nil
}

// overrides returns the override policies of both scopes. They are the cache's own: do not change them.
func (r Deps) overrides(ctx context.Context) ([]policyv1alpha1.Override, error) {
	var out []policyv1alpha1.Override
	var namespaced policyv1alpha1.OverridePolicyList
	if err := r.Hub.List(ctx, &namespaced, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list overrides: %w", err)
	}
	for i := range namespaced.Items {
		out = append(out, &namespaced.Items[i])
	}
	var cluster policyv1alpha1.ClusterOverridePolicyList
	if err := r.Hub.List(ctx, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list cluster overrides: %w", err)
	}
	for i := range cluster.Items {
		out = append(out, &cluster.Items[i])
	}
	return out, nil
}

// partOf returns the health of a template that has a binding, by cluster. Where binding or Works are not up to date
// with policies and overrides, the part says so.
func (r *Reader) partOf(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding, all given) (rollup.Part, error) {
	works, err := r.works(ctx, b)
	if err != nil {
		return rollup.Part{}, err
	}
	asked, err := all.asked()
	if err != nil {
		return rollup.Part{}, err
	}
	c := asked.directory.Case(template)
	c.NoPreemption = asked.noPreemption
	why, err := propagation.Lags(c, b)
	if err != nil {
		return rollup.Part{}, err
	}
	return rollup.PartOf(template, b, works, all.silent).Lagging(why).Outdating(asked.outdated(template, works)), nil
}

// outdated returns a function that reports whether the Work in a cluster was rendered with overrides that have changed
// since.
func (a asked) outdated(template *unstructured.Unstructured, works []*workv1alpha1.Work) func(cluster string) bool {
	resource := resourceOf(template)
	chain := override.Matching(a.overrides.Of(resource), resource)
	made := map[string]*workv1alpha1.Work{}
	for _, w := range works {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); ok {
			made[cluster] = w
		}
	}
	return func(name string) bool {
		work, cluster := made[name], a.clusters[name]
		return work != nil && cluster != nil && !chain.Means(cluster).Matches(work.Annotations)
	}
}
