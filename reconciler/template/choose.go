package template

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
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
	skip         propagation.SkipRules
	noPreemption bool
	find         func(ctx context.Context, ref propagation.PolicyRef) (policyv1alpha1.Policy, bool, error)
	candidates   func(r selector.Resource) ([]policyv1alpha1.Policy, error)
	exists       func(ctx context.Context, namespace, name string) (bool, error)
}

// run sets the policy; nil means that the template has to be released. It ends the pass if
// there is nothing to do, or nothing may be done yet: everything
// then stays as it is.
func (p chooser) run(ctx context.Context, s *state) (loop.Next, error) {
	if busy(s) {
		return loop.Next{Done: true}, nil
	}
	d, err := p.decide(ctx, s.template)
	if err != nil {
		return loop.Next{}, err
	}
	s.policy, s.from = d.Policy, d.From
	switch d.Outcome {
	case propagation.LeftAlone:
		return loop.Next{Done: true}, nil
	case propagation.Released:
		return loop.Next{Done: !claimed(s)}, nil
	case propagation.Waiting:
		log.FromContext(ctx).V(1).Info("waiting for overrides", "policy", s.policy.GetName(), "missing", d.Missing)
		return loop.Next{Done: true}, collides(s)
	default:
		return loop.Next{}, collides(s)
	}
}

// decide collects the candidates for the template, and decides.
func (p chooser) decide(ctx context.Context, template *unstructured.Unstructured) (propagation.Decision, error) {
	owner, err := p.owner(ctx, template)
	if err != nil {
		return propagation.Decision{}, err
	}
	candidates, err := p.candidates(selector.ResourceOf(template))
	if err != nil {
		return propagation.Decision{}, err
	}
	var unread error
	d := propagation.Decide(propagation.Case{
		Template:   template,
		Candidates: candidates,
		Owner:      owner,
		HasOverride: func(namespace, name string) bool {
			there, err := p.exists(ctx, namespace, name)
			unread = errors.Join(unread, err)
			return there
		},
		Skip:         p.skip,
		NoPreemption: p.noPreemption,
	})
	return d, unread
}

// busy reports whether the template or its binding is being deleted. A template that is
// being deleted keeps its binding until the template is gone.
func busy(s *state) bool {
	return s.template.GetDeletionTimestamp() != nil ||
		(s.binding != nil && s.binding.GetDeletionTimestamp() != nil)
}

// owner returns the policy that has claimed obj, nil if it no longer exists.
func (p chooser) owner(ctx context.Context, obj *unstructured.Unstructured) (policyv1alpha1.Policy, error) {
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

// claimed reports whether the template or its binding still carries a claim.
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

// collides returns an error if the name of the template's binding is taken
// by another template. That can happen as binding names have no API group and are in lower case.
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
