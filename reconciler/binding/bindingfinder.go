package binding

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// bindingFinder finds the bindings that overrides concern.
type bindingFinder struct {
	works     *workLister
	templates func(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// overridden returns a function that calls put for the bindings that one of the versions of an override touches.
func (t bindingFinder) overridden(ctx context.Context, put func(ctrl.Request)) func(versions ...policyv1alpha1.Override) {
	return func(versions ...policyv1alpha1.Override) {
		for req := range t.touched(ctx, versions...) {
			put(req)
		}
	}
}

// touched returns the bindings whose template one of the versions of an
// override selects, if they are on a cluster that one of them selects.
func (t bindingFinder) touched(ctx context.Context, versions ...policyv1alpha1.Override) map[ctrl.Request]bool {
	found := map[ctrl.Request]bool{} // once each, however many selectors find it
	if len(versions) == 0 {
		return found
	}
	meant, err := t.works.meant(ctx, versions...)
	if err != nil {
		log.FromContext(ctx).Error(err, "find the clusters that an override means", "override", versions[0].GetName())
		return found
	}
	err = candidates(ctx, t.works.hub, func(b workv1alpha2.Binding) {
		if req := requestFor(b); !found[req] && isOn(b, meant) && touches(ctx, t.templates, b, versions...) {
			found[req] = true
		}
	}, versions...)
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings that an override touches", "override", versions[0].GetName())
	}
	return found
}

// candidates calls yield for the bindings that versions of one override could
// touch, perhaps several times for one. It finds them by the name in a selector, or else by
// the kind. Only for an override without selectors it goes through all.
func candidates(ctx context.Context, hub client.Reader, yield func(workv1alpha2.Binding), versions ...policyv1alpha1.Override) error {
	scope := versions[0].GetNamespace()
	sought := map[templatestore.Key]bool{}
	for _, o := range versions {
		selectors := o.OverrideSpec().ResourceSelectors
		if len(selectors) == 0 {
			return bindings.Each(ctx, hub, yield, client.InNamespace(scope))
		}
		for _, s := range selectors {
			sought[templatestore.Key{
				GroupVersionKind: schema.FromAPIVersionAndKind(s.APIVersion, s.Kind),
				Namespace:        cmp.Or(scope, s.Namespace),
				Name:             s.Name,
			}] = true
		}
	}
	for key := range sought {
		if err := candidatesOf(ctx, hub, yield, key); err != nil {
			return err
		}
	}
	return nil
}

// candidatesOf does so for one selector: a key without a namespace or a name
// stands for all.
func candidatesOf(ctx context.Context, hub client.Reader, yield func(workv1alpha2.Binding), key templatestore.Key) error {
	index := client.MatchingFields{bindings.ByTemplateKind: key.GroupVersionKind.String()}
	if key.Namespace != "" && key.Name != "" {
		index = client.MatchingFields{bindings.ByTemplate: bindings.TemplateValue(key)}
	}
	return bindings.Each(ctx, hub, yield, index, client.InNamespace(key.Namespace))
}

// touches reports whether one of the overrides, which may be being deleted, selects the template
// of b. It reads the template only if its labels matter;
// one that cannot be read counts as selected.
func touches(ctx context.Context, read func(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error), b workv1alpha2.Binding, overrides ...policyv1alpha1.Override) bool {
	ref := &b.BindingSpec().Resource
	r := selector.Resource{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	known := false
	for _, o := range overrides {
		if o.GetNamespace() != "" && o.GetNamespace() != ref.Namespace {
			continue
		}
		selectors := o.OverrideSpec().ResourceSelectors
		if len(selectors) == 0 {
			return true
		}
		if !known && slices.ContainsFunc(selectors, byLabels) {
			obj, presence, err := read(ctx, bindings.TemplateOf(b))
			if err != nil || presence != templatestore.Present {
				return true
			}
			r.Labels, known = obj.GetLabels(), true
		}
		if selector.Best(selectors, r) != selector.None {
			return true
		}
	}
	return false
}

func byLabels(s policyv1alpha1.ResourceSelector) bool { return s.Name == "" && s.LabelSelector != nil }

// isOn reports whether one of the clusters is a target of b.
func isOn(b workv1alpha2.Binding, clusters map[string]bool) bool {
	return slices.ContainsFunc(plan.Targets(plan.SpecOf(b)), func(t workv1alpha2.TargetCluster) bool { return clusters[t.Name] })
}

// selectable reports whether anything changed by which overrides select clusters.
func selectable(before, after *clusterv1alpha1.Cluster) bool {
	a, b := &before.Spec, &after.Spec
	return !maps.Equal(before.Labels, after.Labels) || a.Provider != b.Provider || a.Region != b.Region ||
		!slices.Equal(selector.Zones(before), selector.Zones(after))
}
