package health_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestRulesOfTwo: a policy or an override that another Kustomization has overwritten is reported.
func TestRulesOfTwo(t *testing.T) {
	meta := func(namespace string, by client.ObjectKey) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: inventory.OwnerLabels(by)}
	}
	near, far := client.ObjectKey{Namespace: "team", Name: "other"}, client.ObjectKey{Namespace: "elsewhere", Name: "other"}
	merged := meta("team", near)
	merged.Annotations = map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "Merge"}
	waits := func(kind, name, reason string) []rollup.Part {
		return []rollup.Part{{Object: kind + " " + name, State: rollup.Progressing, Reason: reason}}
	}
	for name, tc := range map[string]struct {
		kind string
		rule client.Object
		want []rollup.Part
	}{
		"it is this one's":                     {"PropagationPolicy", &policyv1alpha1.PropagationPolicy{ObjectMeta: meta("team", owner)}, nil},
		"another one's":                        {"PropagationPolicy", &policyv1alpha1.PropagationPolicy{ObjectMeta: meta("team", near)}, waits("PropagationPolicy", "team/web", "Kustomization team/other applies it, too")},
		"an override":                          {"OverridePolicy", &policyv1alpha1.OverridePolicy{ObjectMeta: meta("team", near)}, waits("OverridePolicy", "team/web", "Kustomization team/other applies it, too")},
		"one for all namespaces":               {"ClusterPropagationPolicy", &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta("", near)}, waits("ClusterPropagationPolicy", "web", "Kustomization team/other applies it, too")},
		"an override for all namespaces":       {"ClusterOverridePolicy", &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: meta("", near)}, waits("ClusterOverridePolicy", "web", "Kustomization team/other applies it, too")},
		"one of another namespace has it":      {"PropagationPolicy", &policyv1alpha1.PropagationPolicy{ObjectMeta: meta("team", far)}, waits("PropagationPolicy", "team/web", "another Kustomization applies it, too")},
		"so, and it is not to be told":         {"ClusterPropagationPolicy", &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta("", far)}, nil},
		"it is meant to be written by several": {"PropagationPolicy", &policyv1alpha1.PropagationPolicy{ObjectMeta: merged}, nil},
		"nobody's labels are on it":            {"PropagationPolicy", &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}, nil},
		"it is gone":                           {"PropagationPolicy", &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gone"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			hub := hubOf(tc.rule)
			entry := inventory.Entry{ID: inventory.ID{Namespace: tc.rule.GetNamespace(), Name: "web", GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: tc.kind}}, Version: "v1alpha1"}
			got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Parts(t.Context(), owner, []inventory.Entry{entry})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
