package riskyedits

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// withdrawals finds what goes along with templates no more: objects that a policy stops to take along (propagateDeps) with
// templates that still refer to them, and those that leave clusters with their templates.
type withdrawals struct{ *check }

// losses returns what a policy does not take along any more, without precious objects, which are found in any case.
func (c withdrawals) losses(ctx context.Context, policy inventory.ID) (finding, error) {
	if c.revision.Allowed.Lets(policy) {
		return finding{}, nil
	}
	if err := c.readWorld(ctx); err != nil {
		return finding{}, err
	}
	if next := c.world.next[policy]; next == nil || propagation.TakesAlong(next.PropagationSpec()) {
		return finding{}, nil
	}
	if err := c.readBound(ctx); err != nil {
		return finding{}, err
	}
	out, counted := finding{policy: policy}, &summary{}
	var users []string
	for _, b := range c.along {
		stays := ptr.Deref(b.BindingSpec().PreserveResourcesOnDeletion, false)
		if stays || !c.parts(b, policy) || inventory.PreciousKind(bindings.TemplateOf(b).GroupKind()) != "" {
			continue
		}
		clusters, by := c.dependency(b, policy).Missed()
		counted.add(b, clusters)
		users = append(users, by...)
	}
	slices.Sort(users)
	out.mistake = "propagateDeps is off, and " + still(slices.Compact(users)) + " to what went along"
	out.does, out.clusters = "take "+counted.String()+" out of", counted.clusters
	return out, nil
}

// still returns a text such as "Deployment shop/web and 1 more still refer".
func still(users []string) string {
	switch len(users) {
	case 0:
		return ""
	case 1:
		return users[0] + " still refers"
	default:
		return fmt.Sprintf("%s and %d more still refer", users[0], len(users)-1)
	}
}

// user is what becomes of a template that takes others along.
type user struct {
	name string
	// policy has it with the revision; none for the zero ID.
	policy inventory.ID
	leaves []string
	// alone says that it takes nothing along any more.
	alone bool
}

// userOf returns what becomes of the template of a binding. It finds that out once.
func (c withdrawals) userOf(b workv1alpha2.Binding) user {
	key := client.ObjectKeyFromObject(b)
	if out, known := c.users[key]; known {
		return out
	}
	before, after := c.carriers(b)
	out := user{name: titleOf(b.BindingSpec().Resource), leaves: c.lost(b, before, after)}
	if after != nil {
		out.policy, out.alone = idOf(after), c.tookAlong(b, before) && !propagation.TakesAlong(after.PropagationSpec())
	}
	if c.users == nil {
		c.users = map[client.ObjectKey]user{}
	}
	c.users[key] = out
	return out
}

// parts reports whether a template takes an object along no more by a policy.
func (c withdrawals) parts(b workv1alpha2.Binding, policy inventory.ID) bool {
	return slices.ContainsFunc(b.BindingSpec().RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
		with := c.bound[client.ObjectKey{Namespace: by.Namespace, Name: by.Name}]
		if with == nil {
			return false
		}
		of := c.userOf(with)
		return of.alone && of.policy == policy
	})
}

// dependency returns what the revision changes about an object that goes along with templates, or may; the policy is the
// one in question.
func (c withdrawals) dependency(b workv1alpha2.Binding, policy inventory.ID) riskyedit.Dependency {
	out := c.placed(b, policy)
	for _, by := range b.BindingSpec().RequiredBy {
		next := riskyedit.User{Clusters: clusterNames(by.Clusters)}
		if with := c.bound[client.ObjectKey{Namespace: by.Namespace, Name: by.Name}]; with != nil {
			of := c.userOf(with)
			next.Name, next.Leaves, next.Alone, next.Edited, next.Done = of.name, of.leaves, of.alone, of.policy == policy, c.done(with, b)
		}
		out.Users = append(out.Users, next)
	}
	return out
}

// placed returns in which clusters policies have an object of their own accord, with the revision.
func (c withdrawals) placed(b workv1alpha2.Binding, policy inventory.ID) riskyedit.Dependency {
	if len(b.BindingSpec().Clusters) == 0 && b.GetDeletionTimestamp() == nil {
		template, _ := c.template(b)
		if d := propagation.Decide(c.world.after.Case(template)); d.Outcome == propagation.Carried {
			return riskyedit.Dependency{Placed: riskyedit.Reaches(d.Policy.PropagationSpec(), c.fleet)}
		}
		return riskyedit.Dependency{}
	}
	before, after := c.carriers(b)
	lost := c.lost(b, before, after)
	out := riskyedit.Dependency{Placed: slices.DeleteFunc(clusterNames(b.BindingSpec().Clusters), func(name string) bool { return slices.Contains(lost, name) })}
	if after == nil {
		return out
	}
	if out.Placed = append(out.Placed, riskyedit.Reaches(after.PropagationSpec(), c.fleet)...); idOf(after) == policy {
		out.Unplaced = lost
	}
	return out
}

// tookAlong reports whether a template took along what it refers to before the revision. Where it has a policy, that says
// so: somebody may just have edited it on the control plane.
func (c withdrawals) tookAlong(b workv1alpha2.Binding, before policyv1alpha1.Policy) bool {
	if p := c.world.before[claimOf(b)]; p != nil {
		return propagation.TakesAlong(before.PropagationSpec())
	}
	return b.BindingSpec().PropagateDeps
}

// done reports whether a template referred to an object and does not any more with the revision. It is false where that is
// not known.
func (c withdrawals) done(user, along workv1alpha2.Binding) bool {
	template, _ := c.template(user)
	id := inventory.IDOf(template)
	was, is := c.revision.Seen[id], c.world.templates[id]
	if was == nil || is == nil {
		return false
	}
	object, _ := c.template(along)
	to := selector.ResourceOf(object)
	return c.refers(was, to, false) && !c.refers(is, to, true)
}

// refers reports whether a template refers to an object; otherwise is the answer where that cannot be told.
func (c withdrawals) refers(template *unstructured.Unstructured, to selector.Resource, otherwise bool) bool {
	if c.rules == nil { // without customizations of the control plane
		c.rules = interpreter.New(customizations.Table(), native.Table())
	}
	deps, known, err := c.rules.Dependencies(template)
	if !known || err != nil {
		return otherwise
	}
	return slices.ContainsFunc(dependency.Needs(deps), func(n dependency.Need) bool { return n.Means(to) })
}

func clusterNames(targets []workv1alpha2.TargetCluster) []string {
	out := make([]string, 0, len(targets))
	for _, t := range targets {
		out = append(out, t.Name)
	}
	return out
}
