package template

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Indexes of policies in the hub's cache.
const (
	// bySelector finds policies by what their selectors name: a kind, or one
	// object of a kind. A selector without a name is under anyName.
	bySelector = "selects"
	// byOverride finds policies by the overrides that they depend on.
	byOverride = "dependsOn"
)

// anyName stands for selectors that name no object. No object has this name.
const anyName = "*"

// catalog finds policies and overrides in the hub's cache. What it returns is
// shared: it must not be changed.
type catalog struct{ hub client.Reader }

// register adds the indexes that the catalog uses.
func (catalog) register(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := map[string]func(policyv1alpha1.Policy) []string{
		bySelector: selectorKeys,
		byOverride: func(p policyv1alpha1.Policy) []string { return p.PropagationSpec().DependentOverrides },
	}
	for field, values := range indexes {
		extract := func(obj client.Object) []string { return values(obj.(policyv1alpha1.Policy)) }
		for _, kind := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}} {
			if err := indexer.IndexField(ctx, kind, field, extract); err != nil {
				return fmt.Errorf("index policies by %s: %w", field, err)
			}
		}
	}
	return nil
}

// selectorKeys returns the keys under which a policy is indexed.
func selectorKeys(p policyv1alpha1.Policy) []string {
	selectors := p.PropagationSpec().ResourceSelectors
	keys := make([]string, 0, 2*len(selectors))
	for i := range selectors {
		name := selectors[i].Name
		if name == "" {
			name = anyName
		}
		keys = append(keys, selectorKey(kindOf(&selectors[i]), name), kindOf(&selectors[i]).String())
	}
	return keys
}

func selectorKey(gvk schema.GroupVersionKind, name string) string {
	return gvk.String() + " " + name
}

// find returns the policy that ref names, and false if there is none.
func (c catalog) find(ctx context.Context, ref propagation.PolicyRef) (policyv1alpha1.Policy, bool, error) {
	return c.get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
}

// get returns the policy under key; one without a namespace is cluster-wide.
func (c catalog) get(ctx context.Context, key client.ObjectKey) (policyv1alpha1.Policy, bool, error) {
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

// candidates returns the policies that may select r: those whose selectors name
// it, or name no object of its kind. Policies that have no permanent id yet
// cannot claim and are left out.
func (c catalog) candidates(ctx context.Context, r selector.Resource) ([]policyv1alpha1.Policy, error) {
	var out []policyv1alpha1.Policy
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	collect := func(p policyv1alpha1.Policy) {
		if propagation.RefOf(p).ID != "" {
			out = append(out, p)
		}
	}
	for _, name := range []string{r.Name, anyName} {
		index := client.MatchingFields{bySelector: selectorKey(gvk, name)}
		if r.Namespace != "" {
			if err := c.each(ctx, r.Namespace, collect, index, client.InNamespace(r.Namespace)); err != nil {
				return nil, err
			}
		}
		if err := c.each(ctx, "", collect, index); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// selecting calls yield for the policies of both scopes that select the kind.
func (c catalog) selecting(ctx context.Context, gvk schema.GroupVersionKind, yield func(policyv1alpha1.Policy)) error {
	index := client.MatchingFields{bySelector: gvk.String()}
	if err := c.each(ctx, anyName, yield, index); err != nil {
		return err
	}
	return c.each(ctx, "", yield, index)
}

// depending calls yield for the policies that depend on the override.
func (c catalog) depending(ctx context.Context, override client.ObjectKey, yield func(policyv1alpha1.Policy)) error {
	return c.each(ctx, override.Namespace, yield, client.MatchingFields{byOverride: override.Name}, client.InNamespace(override.Namespace))
}

// each lists cluster-wide policies if scope is empty, namespaced ones
// otherwise.
func (c catalog) each(ctx context.Context, scope string, yield func(policyv1alpha1.Policy), opts ...client.ListOption) error {
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

// overrideExists says whether there is an override of the name that is not
// being deleted.
func (c catalog) overrideExists(ctx context.Context, namespace, name string) (bool, error) {
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
