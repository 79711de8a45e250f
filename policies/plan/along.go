package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// along adds to the plans of templates what follows from the references of others
// to them (propagateDeps). The templates are those of the plans, in their order.
func (in *FleetInput) along(plans []TemplatePlan, now *bound, snap placement.Snapshot) {
	var users []dependency.User
	visited := map[dependency.Ref]bool{}
	for i, template := range in.Templates {
		b := plans[i].Binding
		if b == nil {
			b = now.of(template)
		}
		if b == nil {
			continue
		}
		visited[dependency.Ref{Namespace: b.GetNamespace(), Name: b.GetName()}] = true
		if user, uses := in.user(&plans[i], template, b); uses {
			users = append(users, user)
		}
	}
	for i, template := range in.Templates {
		if now.taken(template) != nil {
			continue // it cannot have a binding of its own
		}
		in.attach(&plans[i], template, now.of(template), users, visited)
		if len(plans[i].NeededBy) > 0 {
			in.resend(&plans[i], template, snap)
		}
	}
}

// user returns a template as a user of its dependencies, and false where its policy propagates
// none.
func (in *FleetInput) user(p *TemplatePlan, template *unstructured.Unstructured, b workv1alpha2.Binding) (dependency.User, bool) {
	if !dependency.Uses(b) {
		return dependency.User{}, false
	}
	deps, _, err := in.Interpreter.Dependencies(template)
	last := in.wentAlong(dependency.Ref{Namespace: b.GetNamespace(), Name: b.GetName()}) // what clusters hold, or what was recorded last
	if err == nil && p.Binding != nil {
		deps, err = dependency.Check(deps, last, p.Resource, in.Skip)
	} else {
		deps = last
	}
	if _, awaits := kinds.Awaits(err); err != nil && !awaits {
		p.Err = errors.Join(p.Err, err)
	}
	deps, refused := in.scope(p, b, last).Divide(deps)
	p.Err = errors.Join(p.Err, dependency.Refused(p.Resource, refused))
	user := dependency.UserOf(b)
	user.Needs = dependency.Needs(deps)
	return user, true
}

// wentAlong returns the dependencies that run because of a template, as today's bindings record them.
func (in *FleetInput) wentAlong(ref dependency.Ref) []kinds.Dependency {
	var out []kinds.Dependency
	for _, b := range in.Bindings {
		if of := b.BindingSpec().Resource; slices.Contains(dependency.Refs(b), ref) {
			out = append(out, kinds.Dependency{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
		}
	}
	return dependency.Union(out, nil)
}

// scope returns what the references of a template may reach. Grants count that are
// among the templates.
func (in *FleetInput) scope(p *TemplatePlan, b workv1alpha2.Binding, last []kinds.Dependency) *dependency.ReferenceScope {
	out := &dependency.ReferenceScope{Template: p.Resource}
	claim, claimed := propagation.Claimed(b)
	switch {
	case !claimed:
		out.Release(last)
	case claim.Namespace == "":
		for _, policy := range in.Policies {
			if policy.GetNamespace() == "" && policy.GetName() == claim.Name {
				out.Open(policy)
			}
		}
	}
	for _, obj := range in.Templates {
		if slices.Contains(dependency.GrantKinds(), obj.GroupVersionKind()) {
			out.Grants = append(out.Grants, dependency.GrantOf(obj))
		}
	}
	return out
}

// attach sets the binding that a template has because others refer to it.
func (in *FleetInput) attach(p *TemplatePlan, template *unstructured.Unstructured, current workv1alpha2.Binding, all []dependency.User, visited map[dependency.Ref]bool) {
	switch {
	case p.Binding != nil:
		current = p.Binding
	case current != nil && p.Outcome == propagation.Released:
		current = current.DeepCopyObject().(workv1alpha2.Binding)
		propagation.Unclaim(current)
	}
	var users []dependency.User
	if propagation.Propagates(p.Resource, in.Skip) {
		for _, u := range all {
			if u.Means(p.Resource) {
				users = append(users, u)
			}
		}
	}
	if len(users) == 0 && (current == nil || !dependency.Tied(current)) {
		return
	}
	d := dependency.Decide(dependency.Case{
		Object: template, Binding: current, Users: users,
		Left: func(ref dependency.Ref) bool { return in.Whole || visited[ref] },
		NewID: func() string {
			name := workv1alpha2.BindingName(template.GetKind(), template.GetName())
			return uuid.NewSHA1(uuid.NameSpaceOID, []byte("binding/"+template.GetNamespace()+"/"+name)).String()
		},
	})
	p.Binding, p.Dropped = d.Binding, d.Binding == nil && current != nil
	if p.Binding == nil {
		p.Works = nil
		return
	}
	p.NeededBy = dependency.Refs(p.Binding)
	if p.Policy == nil && len(p.NeededBy) > 0 {
		p.Why += ", goes along with " + named(p.NeededBy)
	}
}

// resend renders the Works of a template again, with the clusters of the templates that need it.
func (in *FleetInput) resend(p *TemplatePlan, template *unstructured.Unstructured, snap placement.Snapshot) {
	template = template.DeepCopy()
	p.claim(template)
	digest, err := propagation.Digest(template)
	if stands := p.Binding.GetAnnotations()[propagation.DigestAnnotation]; err != nil || stands != "" && stands != digest {
		p.Err = errors.Join(p.Err, err)
		return
	}
	works, err := in.Kept.Works(WorksInput{
		Binding: p.Binding, Template: template, Cluster: snap.Cluster, Overrides: in.Overrides, Interpreter: in.Interpreter,
		Quotas: QuotasOf(in.Quotas, template.GetNamespace()),
	})
	if err != nil {
		p.Err = errors.Join(p.Err, err)
		return
	}
	p.Works = works
}

// named lists some of the bindings.
func named(refs []dependency.Ref) string {
	const most = 3
	words := make([]string, 0, most+1)
	for _, ref := range refs[:min(len(refs), most)] {
		words = append(words, ref.String())
	}
	if len(refs) > most {
		words = append(words, "others")
	}
	return strings.Join(words, ", ")
}
