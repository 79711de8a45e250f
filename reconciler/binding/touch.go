package binding

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/template/store"
)

// touches says whether one of the overrides means the template of b, whether it
// is being deleted or not. The template is read only where its labels matter,
// and one that cannot be read counts as meant.
func touches(ctx context.Context, read func(context.Context, store.Key) (*unstructured.Unstructured, store.Presence, error), b workv1alpha2.Binding, overrides ...policyv1alpha1.Override) bool {
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
			if err != nil || presence != store.Present {
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

// selective returns the overrides with a rule that picks clusters by their
// labels or fields.
func (s *shelf) selective(ctx context.Context) ([]policyv1alpha1.Override, error) {
	all, err := s.allOverrides(ctx)
	return slices.DeleteFunc(all, func(o policyv1alpha1.Override) bool {
		spec := o.OverrideSpec()
		return !picks(spec.TargetCluster) && !slices.ContainsFunc(spec.OverrideRules, func(rule policyv1alpha1.RuleWithCluster) bool {
			return picks(rule.TargetCluster)
		})
	}), err
}

func picks(a *policyv1alpha1.ClusterAffinity) bool {
	return a != nil && (a.LabelSelector != nil || a.FieldSelector != nil)
}

// regrouped says whether anything changed that overrides pick clusters by.
func regrouped(before, after *clusterv1alpha1.Cluster) bool {
	a, b := &before.Spec, &after.Spec
	return !maps.Equal(before.Labels, after.Labels) || a.Provider != b.Provider || a.Region != b.Region ||
		!slices.Equal(selector.Zones(before), selector.Zones(after))
}
