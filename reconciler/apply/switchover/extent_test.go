package switchover_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

func TestBegins(t *testing.T) {
	rule := func(kind string) schema.GroupVersionKind { return policyv1alpha1.GroupVersion.WithKind(kind) }
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	everywhere, policy := rule(policyv1alpha1.ResourceKindClusterOverridePolicy), rule(policyv1alpha1.ResourceKindClusterPropagationPolicy)
	within := rule(policyv1alpha1.ResourceKindOverridePolicy)
	said := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: revisiongate.Condition, Status: metav1.ConditionTrue, Reason: reason}}
	}
	type kinds = []schema.GroupVersionKind
	for name, tc := range map[string]struct {
		written, unchanged, deleted kinds
		others                      bool
		stated                      []metav1.Condition
		want                        revisiongate.Extent
	}{
		"nothing is defined":                                         {written: kinds{everywhere}, unchanged: kinds{namespace}, want: revisiongate.All},
		"a namespace and a cluster-wide override change":             {written: kinds{namespace, everywhere}, want: revisiongate.Definitions},
		"a namespace changes and a cluster-wide override goes":       {written: kinds{namespace}, deleted: kinds{everywhere}, want: revisiongate.Definitions},
		"a namespace changes and an override in one":                 {written: kinds{namespace, within}, want: revisiongate.None},
		"a namespace and a policy change, which carries none":        {written: kinds{namespace, policy}, want: revisiongate.None},
		"a kind and a policy change":                                 {written: kinds{kind, policy}, want: revisiongate.Definitions},
		"a kind and a cluster-wide override change":                  {written: kinds{kind, everywhere}, want: revisiongate.Definitions},
		"a namespace changes, and others are switched with it":       {written: kinds{namespace, within}, others: true, want: revisiongate.Definitions},
		"an earlier run has begun to define":                         {written: kinds{namespace, everywhere}, stated: said(revisiongate.ReasonDefining), want: revisiongate.Definitions},
		"an earlier run has begun to switch all, and did not end it": {written: kinds{namespace, everywhere}, stated: said(revisiongate.ReasonWritten), want: revisiongate.None},
	} {
		t.Run(name, func(t *testing.T) {
			var plan applier.Plan
			for action, list := range map[applier.Action]kinds{applier.Configured: tc.written, applier.Unchanged: tc.unchanged} {
				for _, gvk := range list {
					obj := &unstructured.Unstructured{}
					obj.SetGroupVersionKind(gvk)
					plan.Changes = append(plan.Changes, applier.Change{Desired: obj, Action: action})
				}
			}
			var deleted []inventory.Entry
			for _, gvk := range tc.deleted {
				deleted = append(deleted, inventory.Entry{ID: inventory.ID{Name: "gone", GroupKind: gvk.GroupKind()}, Version: gvk.Version})
			}
			if got := switchover.Begins(plan, deleted, tc.others, tc.stated); got != tc.want {
				t.Errorf("begins to an extent of %d, want %d", got, tc.want)
			}
		})
	}
}
