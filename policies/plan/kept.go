package plan

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Kept are the Works of a plan, for another one that differs from it in few templates: most of the time that a plan takes
// goes into Works. What was kept is shared by both and must not be changed. It may be used by several goroutines.
type Kept struct {
	interpreter *interpreter.Interpreter
	clusters    map[string]*clusterv1alpha1.Cluster
	works       map[bindingKey]keptWorks
}

// keptWorks are Works, and what they were made from.
type keptWorks struct {
	template  *unstructured.Unstructured // with its claim
	binding   workv1alpha2.Binding
	overrides []policyv1alpha1.Override
	quotas    []*policyv1alpha1.FederatedResourceQuota
	works     []WorkPlan
}

// Keep returns the Works of plans, which Fleet has made of in.
func Keep(in FleetInput, plans []TemplatePlan) *Kept {
	k := &Kept{interpreter: in.Interpreter, clusters: make(map[string]*clusterv1alpha1.Cluster, len(in.Clusters)), works: make(map[bindingKey]keptWorks, len(plans))}
	for _, c := range in.Clusters {
		k.clusters[c.Name] = c
	}
	made := make(map[bindingKey]*TemplatePlan, len(plans))
	for i := range plans {
		if p := &plans[i]; p.Binding != nil && len(p.Works) > 0 {
			made[bindingKey{p.Binding.GetNamespace(), p.Binding.GetName()}] = p
		}
	}
	for _, t := range in.Templates {
		key := bindingKey{t.GetNamespace(), workv1alpha2.BindingName(t.GetKind(), t.GetName())}
		p := made[key]
		if p == nil || !isFor(p.Binding, t) || !p.made() {
			continue
		}
		t = t.DeepCopy()
		p.claim(t)
		k.works[key] = keptWorks{
			template: t, binding: p.Binding, works: p.Works,
			overrides: override.Sorted(in.Overrides, selector.ResourceOf(t)), quotas: QuotasOf(in.Quotas, t.GetNamespace()),
		}
	}
	return k
}

// made reports whether the Works are those of the binding as it is.
func (p *TemplatePlan) made() bool {
	return slices.EqualFunc(p.Works, Targets(SpecOf(p.Binding)), func(w WorkPlan, t workv1alpha2.TargetCluster) bool { return w.Cluster == t.Name })
}

// claim gives a template the claim that it has by the plan.
func (p *TemplatePlan) claim(template *unstructured.Unstructured) {
	switch p.Outcome {
	case propagation.Carried:
		p.Activation.Claim(p.Policy).Set(template)
	case propagation.Released:
		propagation.Unclaim(template)
	}
}

// Works returns what plan.Works would, without making it anew where nothing has changed that it is made from. A nil Kept
// has none.
func (k *Kept) Works(in WorksInput) ([]WorkPlan, error) {
	if k == nil {
		return Works(in)
	}
	kept, has := k.works[bindingKey{in.Binding.GetNamespace(), in.Binding.GetName()}]
	if !has || !k.same(&kept, &in) {
		return Works(in)
	}
	return kept.works, nil
}

// same reports whether Works would be made from the same again.
func (k *Kept) same(kept *keptWorks, in *WorksInput) bool {
	return k.interpreter == in.Interpreter &&
		PermanentID(kept.binding) == PermanentID(in.Binding) &&
		slices.Equal(PrunedFrom(kept.binding), PrunedFrom(in.Binding)) &&
		equality.Semantic.DeepEqual(kept.binding.BindingSpec(), in.Binding.BindingSpec()) &&
		reflect.DeepEqual(kept.template.Object, in.Template.Object) &&
		slices.EqualFunc(kept.overrides, override.Sorted(in.Overrides, selector.ResourceOf(in.Template)), sameOverride) &&
		slices.EqualFunc(kept.quotas, in.Quotas, func(a, b *policyv1alpha1.FederatedResourceQuota) bool { return a == b || reflect.DeepEqual(a, b) }) &&
		!slices.ContainsFunc(kept.works, func(w WorkPlan) bool { return !k.sameCluster(w.Cluster, in) })
}

func sameOverride(a, b policyv1alpha1.Override) bool { return a == b || reflect.DeepEqual(a, b) }

// sameCluster reports whether a cluster is what overrides saw of it.
func (k *Kept) sameCluster(name string, in *WorksInput) bool {
	was, is := k.clusters[name], (*clusterv1alpha1.Cluster)(nil)
	if c, known := in.Cluster(name); known {
		is = c
	}
	if was == is || was == nil || is == nil {
		return was == is
	}
	return reflect.DeepEqual(was.Labels, is.Labels) && reflect.DeepEqual(was.Spec, is.Spec)
}
