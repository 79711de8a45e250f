package exchange

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/switching"
)

// mostRelated is with how many Kustomizations one is switched for what it carries or overrides of theirs, or they of it: to have
// all of a fleet count at the same time for a rule that means all of it would have everybody wait for the slowest.
const mostRelated = 20

// related returns the siblings for which the artifact holds something else, too, where their policies and overrides mean
// what is written here, as they are or as they will be, or those that are written here mean something of theirs; siblings that the
// artifact is about to bring are among them. It returns none of more than mostRelated, and none between which and this one
// spec.dependsOn gives an order.
func (x *Exchanges) related(ctx context.Context, q Query, all []kustomizev1.Kustomization) ([]client.ObjectKey, error) {
	rules, templates := written(q)
	if len(rules)+len(templates) == 0 {
		return nil, nil
	}
	own := client.ObjectKeyFromObject(q.Of)
	var out []client.ObjectKey
	var others []*kustomizev1.Kustomization
	for i := range all {
		ks := &all[i]
		if ks.DeletionTimestamp != nil {
			ends, err := x.endsWith(ctx, q, ks, templates)
			if err != nil {
				return nil, err
			}
			if ends {
				out = append(out, client.ObjectKeyFromObject(ks))
			}
			continue
		}
		if client.ObjectKeyFromObject(ks) == own || !x.siblings.Is(ks, q.Of.Namespace, q.At) || !awaits(ks, q) {
			continue
		}
		means, err := x.mean(ctx, ks, rules, templates)
		if err == nil && means {
			means, err = x.forecast.atOnce(ctx, q.Of, q.At, ks)
		} else if err == nil {
			others = append(others, ks)
		}
		if err != nil {
			return nil, err
		}
		if means {
			out = append(out, client.ObjectKeyFromObject(ks))
		}
	}
	anew, err := x.anew(ctx, q, others, templates)
	if err != nil {
		return nil, err
	}
	brought, err := brought(q, templates)
	if err != nil {
		return nil, err
	}
	out = slices.Concat(out, anew, brought)
	if len(out) > mostRelated {
		return nil, nil
	}
	return out, nil
}

// endsWith reports whether a sibling is being deleted whose policies or overrides mean one of the templates: those that it does not hand
// over go with it.
func (x *Exchanges) endsWith(ctx context.Context, q Query, ks *kustomizev1.Kustomization, templates []selector.Resource) (bool, error) {
	was := *ks
	if was.DeletionTimestamp = nil; len(templates) == 0 || !x.siblings.Is(&was, q.Of.Namespace, q.At) || decide(ks, q.At) != willWrite {
		return false, nil
	}
	return x.mean(ctx, ks, nil, templates)
}

// anew returns those of the others whose policies and overrides come to mean one of the templates with the artifact. They have
// to be built for that: where the artifact is another one for more than mostRelated of them none is.
func (x *Exchanges) anew(ctx context.Context, q Query, others []*kustomizev1.Kustomization, templates []selector.Resource) ([]client.ObjectKey, error) {
	if len(templates) == 0 {
		return nil, nil
	}
	var changed []*kustomizev1.Kustomization
	for _, ks := range others {
		at, err := x.forecast.atOnce(ctx, q.Of, q.At, ks)
		if err != nil {
			return nil, err
		}
		if !at {
			continue
		}
		if changed = append(changed, ks); len(changed) > mostRelated {
			return nil, nil
		}
	}
	var out []client.ObjectKey
	for _, ks := range changed {
		wants, err := x.siblings.Wants(ctx, ks, q.At)
		if err != nil {
			return nil, err
		}
		if meanOne(wants.Rules, templates) {
			out = append(out, client.ObjectKeyFromObject(ks))
		}
	}
	return out, nil
}

// brought returns those of the Kustomizations that the artifact brings, or gives another spec, whose policies and overrides mean one of
// the templates.
func brought(q Query, templates []selector.Resource) ([]client.ObjectKey, error) {
	if len(templates) == 0 {
		return nil, nil
	}
	all, err := q.arriving()
	if err != nil {
		return nil, err
	}
	var out []client.ObjectKey
	for key, one := range all {
		if meanOne(one.wants.Rules, templates) {
			out = append(out, key)
		}
	}
	return out, nil
}

// meanOne reports whether one of the policies and overrides means one of the templates.
func meanOne(rules []*unstructured.Unstructured, templates []selector.Resource) bool {
	return slices.ContainsFunc(rules, func(obj *unstructured.Unstructured) bool {
		r, is := ruleOf(obj)
		return is && slices.ContainsFunc(templates, r.means)
	})
}

// awaits reports whether a sibling has yet to write the artifact, and does not refuse it, by what its status says, or has written it
// and says that it waits for others.
func awaits(ks *kustomizev1.Kustomization, q Query) bool {
	switch {
	case ks.Spec.Suspend:
		return false
	case apimeta.IsStatusConditionTrue(ks.Status.Conditions, switching.Condition):
		return true
	case refuses(ks, q.At):
		return false
	default:
		return ks.Status.LastAttemptedRevision != q.At.Revision || lastgood.In(ks.Status).Artifact != q.At.Digest
	}
}

// written are the policies and overrides that are written or deleted, as they were and as they will be, and what else is written.
func written(q Query) (rules []rule, templates []selector.Resource) {
	var was []inventory.ID
	for _, c := range q.Changes {
		if !c.Writes() {
			continue
		}
		was = append(was, inventory.IDOf(c.Desired))
		if r, is := ruleOf(c.Desired); is {
			rules = append(rules, r)
		} else {
			templates = append(templates, selector.ResourceOf(c.Desired))
		}
	}
	for _, id := range append(was, inventory.IDsOf(q.Leaving.Deleted)...) {
		if before := q.Seen[id]; before != nil {
			if r, is := ruleOf(before); is {
				rules = append(rules, r)
			}
		}
	}
	return rules, templates
}

// mean reports whether one of the rules means something that a Kustomization holds, or one of its rules one of the templates.
func (x *Exchanges) mean(ctx context.Context, ks *kustomizev1.Kustomization, rules []rule, templates []selector.Resource) (bool, error) {
	if ks.Status.Inventory == nil || inventory.PlaceOf(ks.Status) != (inventory.Place{}) {
		return false, nil
	}
	for _, ref := range ks.Status.Inventory.Entries {
		isRule := strings.Contains(ref.ID, "_"+policyv1alpha1.GroupVersion.Group+"_")
		if isRule && len(templates) == 0 || !isRule && len(rules) == 0 {
			continue
		}
		entries, err := inventory.Read(&kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{ref}})
		if err != nil {
			continue // whoever applies it reports that
		}
		if means, err := x.meansEntry(ctx, entries[0], rules, templates); means || err != nil {
			return means, err
		}
	}
	return false, nil
}

func (x *Exchanges) meansEntry(ctx context.Context, e inventory.Entry, rules []rule, templates []selector.Resource) (bool, error) {
	obj := emptyRule(e.ID.GroupKind)
	if obj == nil {
		apiVersion, kind := e.GroupVersionKind().ToAPIVersionAndKind()
		resource := selector.Resource{APIVersion: apiVersion, Kind: kind, Namespace: e.ID.Namespace, Name: e.ID.Name}
		return slices.ContainsFunc(rules, func(r rule) bool { return r.means(resource) }), nil
	}
	err := x.hub.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, obj, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look what %s means: %w", inventory.Describe(e.ID), err)
	}
	return slices.ContainsFunc(templates, ruleAs(obj).means), nil
}

// rule is what a policy or an override means.
type rule struct {
	namespace string // empty: of the whole fleet
	selectors []policyv1alpha1.ResourceSelector
	all       bool
}

// emptyRule returns an object of a kind of policies or overrides; nil for another kind.
func emptyRule(kind schema.GroupKind) client.Object {
	if kind.Group != policyv1alpha1.GroupVersion.Group {
		return nil
	}
	switch kind.Kind {
	case policyv1alpha1.ResourceKindPropagationPolicy:
		return &policyv1alpha1.PropagationPolicy{}
	case policyv1alpha1.ResourceKindClusterPropagationPolicy:
		return &policyv1alpha1.ClusterPropagationPolicy{}
	case policyv1alpha1.ResourceKindOverridePolicy:
		return &policyv1alpha1.OverridePolicy{}
	case policyv1alpha1.ResourceKindClusterOverridePolicy:
		return &policyv1alpha1.ClusterOverridePolicy{}
	default:
		return nil
	}
}

// ruleOf returns what a policy or an override means; false for any other object, and for one that cannot be read.
func ruleOf(obj *unstructured.Unstructured) (rule, bool) {
	into := emptyRule(obj.GroupVersionKind().GroupKind())
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
