package template

import (
	"context"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Indexes of policies in the hub's cache.
const (
	// bySelector finds policies by what they may select, see
	// propagation.IndexKeys.
	bySelector = "selects"
	// byKind finds policies by the kinds that they select.
	byKind = "selectsKind"
	// byOverride finds policies by the overrides that they depend on.
	byOverride = "dependsOn"
	// byClass finds policies by the PriorityClass that they name.
	byClass = "priorityClass"
	// byCluster finds policies by the clusters that they name.
	byCluster = "cluster"
)

// everywhere lists policies of all namespaces, in contrast to cluster-wide ones.
const everywhere = "*"

// catalog finds policies and overrides in the hub's cache. What it returns is
// the cache's own: do not change it.
type catalog struct {
	hub client.Reader
	// indexers are those of the two kinds of policies. They are used for every template,
	// and so read directly, without the cost of the cache's List.
	indexers []toolscache.Indexer
}

// register adds the indexes that the catalog uses.
func (c *catalog) register(ctx context.Context, hub cache.Cache) error {
	for _, kind := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}} {
		indexes := map[string]func(policyv1alpha1.Policy) []string{
			byKind: kindKeys,
			byCluster: func(p policyv1alpha1.Policy) []string {
				return propagation.NamedClusters(p.PropagationSpec())
			},
			byOverride: func(p policyv1alpha1.Policy) []string { return p.PropagationSpec().DependentOverrides },
			byClass: func(p policyv1alpha1.Policy) []string {
				if class := p.PropagationSpec().SchedulePriority; class != nil {
					return []string{class.PriorityClassName}
				}
				return nil
			},
		}
		for field, values := range indexes {
			extract := func(obj client.Object) []string { return values(obj.(policyv1alpha1.Policy)) }
			if err := hub.IndexField(ctx, kind, field, extract); err != nil {
				return fmt.Errorf("index policies by %s: %w", field, err)
			}
		}
		informer, err := hub.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch policies: %w", err)
		}
		if err := c.index(informer); err != nil {
			return err
		}
	}
	return nil
}

// index adds the index by selector to an informer of policies.
func (c *catalog) index(informer cache.Informer) error {
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("index policies: the informer of type %T has no indexer", informer)
	}
	if err := shared.AddIndexers(toolscache.Indexers{bySelector: selectorKeys}); err != nil {
		return fmt.Errorf("index policies by %s: %w", bySelector, err)
	}
	c.indexers = append(c.indexers, shared.GetIndexer())
	return nil
}

func selectorKeys(obj any) ([]string, error) {
	p, ok := obj.(policyv1alpha1.Policy)
	if !ok {
		return nil, nil
	}
	return propagation.IndexKeys(p), nil
}

// kindKeys returns the kinds that a policy selects.
func kindKeys(p policyv1alpha1.Policy) []string {
	selectors := p.PropagationSpec().ResourceSelectors
	keys := make([]string, 0, len(selectors))
	for i := range selectors {
		keys = append(keys, kindOf(&selectors[i]).String())
	}
	return keys
}

// find returns the policy that ref names, and false if there is none.
func (c *catalog) find(ctx context.Context, ref propagation.PolicyRef) (policyv1alpha1.Policy, bool, error) {
	return c.get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
}

// get returns the policy under key; one without a namespace is cluster-wide.
func (c *catalog) get(ctx context.Context, key client.ObjectKey) (policyv1alpha1.Policy, bool, error) {
	policy := newPolicy(key.Namespace)
	err := c.hub.Get(ctx, key, policy, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read policy %s: %w", key, err)
	default:
		return policy, true, nil
	}
}

func newPolicy(namespace string) policyv1alpha1.Policy {
	if namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

// candidates returns the policies that may select r.
func (c *catalog) candidates(r selector.Resource) ([]policyv1alpha1.Policy, error) {
	return propagation.Candidates(r, func(key string) ([]policyv1alpha1.Policy, error) {
		var out []policyv1alpha1.Policy
		for _, indexer := range c.indexers {
			found, err := indexer.ByIndex(bySelector, key)
			if err != nil {
				return nil, fmt.Errorf("look up policies: %w", err)
			}
			for _, obj := range found {
				if p, ok := obj.(policyv1alpha1.Policy); ok {
					out = append(out, p)
				}
			}
		}
		return out, nil
	})
}

// selecting calls yield for the policies of both scopes that select the kind.
func (c *catalog) selecting(ctx context.Context, gvk schema.GroupVersionKind, yield func(policyv1alpha1.Policy)) error {
	index := client.MatchingFields{byKind: gvk.String()}
	if err := c.each(ctx, everywhere, yield, index); err != nil {
		return err
	}
	return c.each(ctx, "", yield, index)
}

// depending calls yield for the policies that depend on the override.
func (c *catalog) depending(ctx context.Context, override client.ObjectKey, yield func(policyv1alpha1.Policy)) error {
	return c.each(ctx, override.Namespace, yield, client.MatchingFields{byOverride: override.Name}, client.InNamespace(override.Namespace))
}

// naming calls yield for the policies of both scopes that name something, by the index of
// its kind.
func (c *catalog) naming(ctx context.Context, kind, name string, yield func(policyv1alpha1.Policy)) error {
	index := client.MatchingFields{kind: name}
	if err := c.each(ctx, everywhere, yield, index); err != nil {
		return err
	}
	return c.each(ctx, "", yield, index)
}

// strangers returns the clusters that policy names and that do not exist.
func (c *catalog) strangers(ctx context.Context, policy policyv1alpha1.Policy) ([]propagation.Stranger, error) {
	spec := policy.PropagationSpec()
	if len(propagation.NamedClusters(spec)) == 0 {
		return nil, nil
	}
	var list clusterv1alpha1.ClusterList
	if err := c.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	fleet := make([]string, len(list.Items))
	for i := range list.Items {
		fleet[i] = list.Items[i].Name
	}
	return propagation.Redact(policy, propagation.Strangers(spec, fleet)), nil
}

// priority returns the value of a PriorityClass, and false if it does not exist.
func (c *catalog) priority(ctx context.Context, name string) (int32, bool, error) {
	class := &schedulingv1.PriorityClass{}
	err := c.hub.Get(ctx, client.ObjectKey{Name: name}, class, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("read PriorityClass %s: %w", name, err)
	default:
		return class.Value, class.DeletionTimestamp == nil, nil
	}
}

// each lists cluster-wide policies if scope is empty, namespaced ones
// otherwise.
func (c *catalog) each(ctx context.Context, scope string, yield func(policyv1alpha1.Policy), opts ...client.ListOption) error {
	opts = append(opts, client.UnsafeDisableDeepCopy)
	if scope == "" {
		var list policyv1alpha1.ClusterPropagationPolicyList
		if err := c.hub.List(ctx, &list, opts...); err != nil {
			return fmt.Errorf("list cluster propagation policies: %w", err)
		}
		for i := range list.Items {
			yield(&list.Items[i])
		}
		return nil
	}
	var list policyv1alpha1.PropagationPolicyList
	if err := c.hub.List(ctx, &list, opts...); err != nil {
		return fmt.Errorf("list propagation policies: %w", err)
	}
	for i := range list.Items {
		yield(&list.Items[i])
	}
	return nil
}

// overrideExists reports whether there is an override of the name that is not
// being deleted.
func (c *catalog) overrideExists(ctx context.Context, namespace, name string) (bool, error) {
	var override policyv1alpha1.Override = &policyv1alpha1.OverridePolicy{}
	if namespace == "" {
		override = &policyv1alpha1.ClusterOverridePolicy{}
	}
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, override, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read override %s: %w", name, err)
	}
	return override.GetDeletionTimestamp() == nil, nil
}
