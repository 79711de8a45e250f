package template

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// collisionPause is how long a template whose binding's name is taken waits
// before it looks again.
const collisionPause = time.Minute

// chooser decides which policy carries the template.
type chooser struct {
	skip       propagation.SkipRules
	find       func(ctx context.Context, ref propagation.PolicyRef) (policyv1alpha1.Policy, bool, error)
	candidates func(ctx context.Context, r selector.Resource) ([]policyv1alpha1.Policy, error)
	exists     func(ctx context.Context, namespace, name string) (bool, error)
}

// run sets the policy; nil means that the template is to be released. It ends
// the pass where there is nothing to do, or nothing may be done yet: everything
// then stays as it is.
func (p chooser) run(ctx context.Context, s *state) (loop.Next, error) {
	resource := selector.ResourceOf(s.template)
	holder, err := p.holder(ctx, s.template)
	if err != nil {
		return loop.Next{}, err
	}
	if busy(s) || (!p.eligible(s, resource) && stays(holder)) {
		return loop.Next{Done: true}, nil
	}
	done, err := p.choose(ctx, s, holder, resource)
	if done || err != nil {
		return loop.Next{Done: true}, err
	}
	if s.policy == nil {
		return loop.Next{Done: !claimed(s)}, nil
	}
	if err := collides(s); err != nil {
		return loop.Next{}, err
	}
	missing, err := missingOverrides(ctx, s.policy, p.exists)
	if err != nil || len(missing) == 0 {
		return loop.Next{}, err
	}
	log.FromContext(ctx).V(1).Info("waiting for overrides", "policy", s.policy.GetName(), "missing", missing)
	if s.policy == holder || !claimed(s) {
		return loop.Next{Done: true}, nil
	}
	s.policy = nil
	return loop.Next{}, nil
}

// choose sets the policy: the one that holds the template as long as it selects
// it, else the best one. It returns true where the template is none of this
// version's business.
func (p chooser) choose(ctx context.Context, s *state, holder policyv1alpha1.Policy, resource selector.Resource) (bool, error) {
	switch {
	case !p.eligible(s, resource):
		return false, nil
	case holder != nil && propagation.Selects(holder, resource):
		s.policy = holder
		return false, nil
	case holder != nil && carriedAsOther(holder, s, resource):
		return true, nil
	}
	candidates, err := p.candidates(ctx, resource)
	s.policy, _ = propagation.Choose(resource, candidates)
	return false, err
}

// busy says whether the template or its binding is on its way out. One that is
// being deleted keeps its binding until it is gone.
func busy(s *state) bool {
	return s.template.GetDeletionTimestamp() != nil ||
		(s.binding != nil && s.binding.GetDeletionTimestamp() != nil)
}

// stays says whether the policy that holds a template is there to stay.
func stays(holder policyv1alpha1.Policy) bool {
	return holder == nil || holder.GetDeletionTimestamp() == nil
}

// eligible says whether the template is one that policies may carry.
func (p chooser) eligible(s *state, r selector.Resource) bool {
	return s.template.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel] == "" && propagation.Propagates(r, p.skip)
}

// holder returns the policy that has claimed obj, nil if it no longer exists.
func (p chooser) holder(ctx context.Context, obj *unstructured.Unstructured) (policyv1alpha1.Policy, error) {
	ref, ok := propagation.Claimed(obj)
	if !ok {
		return nil, nil
	}
	policy, found, err := p.find(ctx, ref)
	if err != nil || !found || propagation.RefOf(policy) != ref {
		return nil, err
	}
	return policy, nil
}

// carriedAsOther says whether holder carries the same object in another
// version of its API, so that this version must leave it alone.
func carriedAsOther(holder policyv1alpha1.Policy, s *state, r selector.Resource) bool {
	group := s.key.Group
	for _, sel := range holder.PropagationSpec().ResourceSelectors {
		gv, err := schema.ParseGroupVersion(sel.APIVersion)
		if err != nil || gv.Group != group || sel.APIVersion == r.APIVersion {
			continue
		}
		other := r
		other.APIVersion = sel.APIVersion
		if propagation.Selects(holder, other) {
			return true
		}
	}
	return false
}

// claimed says whether a claim is left on the template or its binding.
func claimed(s *state) bool {
	if _, ok := propagation.Claimed(s.template); ok {
		return true
	}
	if s.binding == nil || collides(s) != nil {
		return false
	}
	_, ok := propagation.Claimed(s.binding)
	return ok
}

// collides returns an error where the name of the template's binding is taken
// by another template: names carry neither API group nor upper case.
func collides(s *state) error {
	if s.binding == nil {
		return nil
	}
	owner := bindings.TemplateOf(s.binding)
	if owner.Group == s.key.Group && owner.Kind == s.key.Kind && owner.ObjectKey() == s.key.ObjectKey() {
		return nil
	}
	name := strings.TrimPrefix(s.binding.GetNamespace()+"/"+s.binding.GetName(), "/")
	return loop.Waiting(policyv1alpha1.EventReasonApplyPolicyFailed, collisionPause, fmt.Errorf(
		"the name of its binding, %s, is taken by %s %s %s: rename one of the two", name, owner.GroupVersion(), owner.Kind, owner.Name))
}

// missingOverrides returns the overrides that p waits for.
func missingOverrides(ctx context.Context, p policyv1alpha1.Policy, exists func(ctx context.Context, namespace, name string) (bool, error)) ([]string, error) {
	var failed error
	missing := propagation.MissingOverrides(p, func(namespace, name string) bool {
		ok, err := exists(ctx, namespace, name)
		if err != nil {
			failed = err
		}
		return ok || err != nil
	})
	return missing, failed
}
