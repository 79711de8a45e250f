package promotion

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// earlier is the policy that the hub already has under the name of the policy to create. An
// interrupted promotion leaves it, and the objects that it propagates may be managed by now:
// they do not belong to another fleet, and the next attempt continues from there.
type earlier struct {
	policy policyv1alpha1.Policy // nil if there is none
}

// findEarlier reads the policy, unless none is to be created.
func findEarlier(ctx context.Context, of Object, o Options) (earlier, error) {
	if o.NoPolicy {
		return earlier{}, nil
	}
	policy, err := readPolicy(ctx, o.Hub, of, o.PolicyName)
	switch {
	case apierrors.IsNotFound(err):
		return earlier{}, nil
	case err != nil:
		return earlier{}, fmt.Errorf("see whether it was promoted before: %w", err)
	}
	return earlier{policy}, nil
}

// alike reports whether the policy has the same effect on its objects as the promotion's would.
func (e earlier) alike(o Options) bool {
	if e.policy == nil || !e.policy.GetDeletionTimestamp().IsZero() {
		return false
	}
	have := e.policy.PropagationSpec()
	return returns(have) && only(have, o.Cluster) && have.ConflictResolution == policyv1alpha1.ConflictOverwrite && have.PropagateDeps == o.Dependencies
}

// carries reports whether the policy selects a template by name and has claimed it.
func (e earlier) carries(template *unstructured.Unstructured, o Options) bool {
	if !e.alike(o) {
		return false
	}
	ref, claimed := propagation.Claimed(template)
	return claimed && ref == propagation.RefOf(e.policy) && slices.ContainsFunc(e.policy.PropagationSpec().ResourceSelectors, func(s policyv1alpha1.ResourceSelector) bool {
		return selected(e.policy, s) == objectOf(template)
	})
}

// item returns the item that the policy has already applied in the member; nil if the
// member's object is not managed, or managed by something else.
func (e earlier) item(ctx context.Context, live *unstructured.Unstructured, o Options) (*Item, error) {
	if !managed(live) || !live.GetDeletionTimestamp().IsZero() || !e.alike(o) {
		return nil, nil
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(live.GroupVersionKind())
	err := o.Hub.Get(ctx, client.ObjectKeyFromObject(live), template)
	if err != nil || !template.GetDeletionTimestamp().IsZero() || !e.carries(template, o) {
		return nil, client.IgnoreNotFound(err)
	}
	binding, err := bindingOf(ctx, o.Hub, objectOf(live))
	if err != nil {
		return nil, fmt.Errorf("see whether %s is carried by %s: %w", objectOf(live).in(o.Cluster), propagation.Title(e.policy), err)
	}
	if binding == nil || live.GetLabels()[workv1alpha2.WorkPermanentIDLabel] != plan.WorkID(plan.PermanentID(binding), o.Cluster) {
		return nil, nil
	}
	return &Item{Template: template, There: true, live: live}, nil
}

// selected returns the object that a selector with a name selects.
func selected(by policyv1alpha1.Policy, s policyv1alpha1.ResourceSelector) Object {
	namespace := s.Namespace
	if namespace == "" {
		namespace = by.GetNamespace()
	}
	return Object{schema.FromAPIVersionAndKind(s.APIVersion, s.Kind), namespace, s.Name}
}
