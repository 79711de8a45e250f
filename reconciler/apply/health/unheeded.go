package health

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Unheeded returns a part for each template of the owner that is not propagated as a policy asks: a policy that the
// owner applied as well, and that could claim it, or a Lazy one that has claimed it. Policies are read without a cache,
// so that one that was applied a moment ago counts.
func (r *Reader) Unheeded(ctx context.Context, owner client.ObjectKey, entries []inventory.Entry) ([]rollup.Part, error) {
	if r.Templates == nil {
		return nil, nil
	}
	policies, err := r.policies(ctx, r.Live)
	if err != nil {
		return nil, err
	}
	return unheeded(ctx, r, owner, entries, policies)
}

func unheeded(ctx context.Context, r *Reader, owner client.ObjectKey, entries []inventory.Entry, policies selection) ([]rollup.Part, error) {
	if len(policies.policies) == 0 {
		return nil, nil
	}
	byRef := map[propagation.PolicyRef]policyv1alpha1.Policy{}
	var own []policyv1alpha1.Policy
	for _, p := range policies.policies {
		if byRef[propagation.RefOf(p)] = p; isOwn(owner, p) {
			own = append(own, p)
		}
	}
	isLazy := func(p policyv1alpha1.Policy) bool {
		return p.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
	}
	// A policy of the owner's may be kept from a template by another one, and a Lazy one by itself, whoever applied it:
	// without either there is nothing to read.
	if len(own) == 0 && !slices.ContainsFunc(policies.policies, isLazy) {
		return nil, nil
	}
	var parts []rollup.Part
	for _, e := range entries {
		binding, err := r.binding(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		// The binding knows the version of the kind that is watched, which may be another one than the entry's.
		key := templatestore.Key{GroupVersionKind: e.GroupVersionKind(), Namespace: e.ID.Namespace, Name: e.ID.Name}
		if binding != nil {
			key = bindings.TemplateOf(binding)
		}
		template, presence, err := r.Templates.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if presence != templatestore.Present || !applied(owner, template) {
			continue
		}
		ref, _ := propagation.Claimed(template)
		policy := byRef[ref]
		if policy == nil {
			continue
		}
		text, contested, err := propagation.Unheeded(template, policy, binding, own)
		if err != nil {
			return nil, err
		}
		if text != "" {
			parts = append(parts, rollup.Part{Object: nameOf(e.ID, template), Unheeded: text, Contested: contested})
		}
	}
	return parts, nil
}

// isOwn reports whether the owner applied a policy, by its labels.
func isOwn(owner client.ObjectKey, p policyv1alpha1.Policy) bool {
	by, known := inventory.OwnerOf(p)
	return known && by == owner
}
