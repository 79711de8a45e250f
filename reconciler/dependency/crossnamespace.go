package dependency

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// grants stands for this loop where templatestore asks who wants ReferenceGrants watched.
type grants struct{}

// crossNamespace is the part of the loops for references to other namespaces.
type crossNamespace struct{ *Reconciler }

// scope returns what the references of a template may reach, and when to ask again
// where that is not known yet. Most templates refer to their own namespace only: for them
// nothing is read.
func (r crossNamespace) scope(ctx context.Context, b workv1alpha2.Binding, template selector.Resource, last, deps []kinds.Dependency) (dependency.ReferenceScope, loop.Next, error) {
	out := dependency.ReferenceScope{Template: template}
	if !dependency.Foreign(template.Namespace, last) && !dependency.Foreign(template.Namespace, deps) {
		return out, loop.Next{}, nil
	}
	claim, claimed := propagation.Claimed(b)
	switch {
	case !claimed:
		out.Release(last)
	case claim.Namespace == "":
		policy := &policyv1alpha1.ClusterPropagationPolicy{}
		err := r.hub.Get(ctx, client.ObjectKey{Name: claim.Name}, policy)
		if client.IgnoreNotFound(err) != nil {
			return out, loop.Next{}, fmt.Errorf("read the ClusterPropagationPolicy %s: %w", claim.Name, err)
		}
		if err == nil && propagation.RefOf(policy).ID == claim.ID {
			out.Open(policy)
		}
	}
	for _, gvk := range dependency.GrantKinds() {
		switch r.templates.State(gvk) {
		case templatestore.Unserved:
			continue
		case templatestore.Synced:
		default:
			return out, loop.Next{After: behind}, nil
		}
		err := r.templates.List(ctx, gvk, "", func(obj *unstructured.Unstructured) {
			out.Grants = append(out.Grants, dependency.GrantOf(obj))
		})
		if err != nil {
			return out, loop.Next{}, err
		}
	}
	return out, loop.Next{}, nil
}

// refusal returns what to report about references that are not permitted; nil for nothing.
// What a policy of its own carries reaches the clusters anyway, and is not reported.
func (r crossNamespace) refusal(ctx context.Context, template selector.Resource, refused []kinds.Dependency) (fault, err error) {
	var reported []kinds.Dependency
	for _, d := range refused {
		carried, err := r.carried(ctx, d)
		if err != nil {
			return nil, err
		}
		if !carried {
			reported = append(reported, d)
		}
	}
	if text := dependency.Refused(template, reported); text != nil {
		return loop.Stalled(workv1alpha2.EventReasonRefNotPermitted, text), nil
	}
	return nil, nil
}

// carried reports whether something besides its users places an object.
func (r crossNamespace) carried(ctx context.Context, d kinds.Dependency) (bool, error) {
	if d.Name == "" {
		return false, nil
	}
	key := templatestore.Key{GroupVersionKind: schema.FromAPIVersionAndKind(d.APIVersion, d.Kind), Namespace: d.Namespace, Name: d.Name}
	b, found, err := r.reader.binding(ctx, bindings.KeyOf(key))
	return err == nil && found && dependency.Governed(b) && bindings.TemplateOf(b).GroupKind() == key.GroupKind(), err
}

// regrant enqueues every template that refers to another namespace.
func (r crossNamespace) regrant() {
	for _, ref := range r.index.crossNamespaceUsers() {
		r.users.Add(requestFor(ref), false)
	}
}

// granted enqueues the templates that refer to a namespace whose grants changed, and
// no others: a tenant who edits grants must not cause work for everybody else.
func (r crossNamespace) granted(namespace string) {
	for _, ref := range r.index.crossNamespaceUsersOf(namespace) {
		r.users.Add(requestFor(ref), false)
	}
}

func isGrant(gvk schema.GroupVersionKind) bool {
	return slices.Contains(dependency.GrantKinds(), gvk)
}
