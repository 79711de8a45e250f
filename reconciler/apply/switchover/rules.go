package switchover

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// changed is what an apply writes or deletes.
type changed struct {
	// rules are the policies and overrides, as they were and as they will be.
	rules []rule
	// templates are what else is written.
	templates []selector.Resource
}

func written(q Query) (out changed) {
	var was []inventory.ID
	for _, c := range q.Changes {
		if !c.Writes() {
			continue
		}
		was = append(was, inventory.IDOf(c.Desired))
		if r, is := ruleOf(c.Desired); is {
			out.rules = append(out.rules, r)
		} else {
			out.templates = append(out.templates, selector.ResourceOf(c.Desired))
		}
	}
	for _, id := range append(was, inventory.IDsOf(q.Leaving.Deleted)...) {
		if before := q.Seen[id]; before != nil {
			if r, is := ruleOf(before); is {
				out.rules = append(out.rules, r)
			}
		}
	}
	return out
}

func (c changed) isEmpty() bool { return len(c.rules)+len(c.templates) == 0 }

// meantBy reports whether a rule means one of the templates, or may mean something that one of the rules means, too: what
// both mean would count with the one before it counts with the other.
func (c changed) meantBy(r rule) bool {
	return slices.ContainsFunc(c.templates, r.means) || slices.ContainsFunc(c.rules, r.overlaps)
}

// meantByAny reports so of those of the objects that are policies and overrides.
func (c changed) meantByAny(rules []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(rules, func(obj *unstructured.Unstructured) bool {
		r, is := ruleOf(obj)
		return is && c.meantBy(r)
	})
}

// rule is what a policy or an override means.
type rule struct {
	namespace string // empty: of the whole fleet
	selectors []policyv1alpha1.ResourceSelector
	all       bool
}

// ruleOf returns what a policy or an override means; false for any other object, and for one that cannot be read.
func ruleOf(obj *unstructured.Unstructured) (rule, bool) {
	into := inventory.NewRule(obj.GroupVersionKind().GroupKind())
	if into == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into) != nil {
		return rule{}, false
	}
	return ruleAs(into), true
}

func ruleAs(obj client.Object) rule {
	switch of := obj.(type) {
	case policyv1alpha1.Policy:
		return rule{namespace: of.GetNamespace(), selectors: of.PropagationSpec().ResourceSelectors}
	case policyv1alpha1.Override:
		return rule{namespace: of.GetNamespace(), selectors: of.OverrideSpec().ResourceSelectors, all: len(of.OverrideSpec().ResourceSelectors) == 0}
	default:
		return rule{}
	}
}

// means reports whether a rule may mean a resource. Where the labels of that are not known, it may have those that are asked for.
func (r rule) means(resource selector.Resource) bool {
	if r.namespace != "" && r.namespace != resource.Namespace {
		return false
	}
	return r.all || slices.ContainsFunc(r.selectors, func(s policyv1alpha1.ResourceSelector) bool {
		if resource.Labels == nil {
			s.LabelSelector = nil
		}
		return selector.Match(s, resource) != selector.None
	})
}

// overlaps reports whether there may be something that two rules mean.
func (r rule) overlaps(other rule) bool {
	return slices.ContainsFunc(r.meant(), func(a policyv1alpha1.ResourceSelector) bool {
		return slices.ContainsFunc(other.meant(), func(b policyv1alpha1.ResourceSelector) bool { return overlap(a, b) })
	})
}

// meant are the selectors of a rule, each with its namespace. One that is empty means everything.
func (r rule) meant() []policyv1alpha1.ResourceSelector {
	out := slices.Clone(r.selectors)
	if r.all {
		out = append(out, policyv1alpha1.ResourceSelector{})
	}
	for i := range out {
		if r.namespace != "" {
			out[i].Namespace = r.namespace
		}
	}
	return out
}

// overlap reports whether there may be something that two selectors mean. Labels count as far as two ask for other values of one.
func overlap(a, b policyv1alpha1.ResourceSelector) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	if differ(a.APIVersion, b.APIVersion) || differ(a.Kind, b.Kind) || differ(a.Namespace, b.Namespace) || differ(a.Name, b.Name) {
		return false
	}
	if a.Name != "" || b.Name != "" || a.LabelSelector == nil || b.LabelSelector == nil {
		return true
	}
	for label, value := range a.LabelSelector.MatchLabels {
		if other, asked := b.LabelSelector.MatchLabels[label]; asked && other != value {
			return false
		}
	}
	return true
}
