package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// What an override put text of a Secret into is marked as what a Kustomization put some into, in the clusters that
// the override means, whatever an override makes of the mark.
func TestWhatAnOverridePutsASecretIntoIsMarked(t *testing.T) {
	const key = gitopsv1alpha1.HoldsSecretsAnnotation
	sets := policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
		Path: "/spec/template/spec/restartPolicy", Operator: policyv1alpha1.OverriderOpAdd, Value: apiextensionsv1.JSON{Raw: []byte(`"canary"`)},
	}}}
	unmarks := policyv1alpha1.Overriders{AnnotationsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{
		Operator: policyv1alpha1.OverriderOpReplace, Value: map[string]string{key: ""},
	}}}
	for name, tc := range map[string]struct {
		template, override string
		does               policyv1alpha1.Overriders
		want               map[string]string
	}{
		"nothing is marked":                  {does: sets, want: map[string]string{"a": "", "b": ""}},
		"the override":                       {override: gitopsv1alpha1.HoldsInFields, does: sets, want: map[string]string{"a": "fields", "b": ""}},
		"the override, by its name":          {override: gitopsv1alpha1.HoldsInName, does: sets, want: map[string]string{"a": "fields", "b": ""}},
		"the template, by its name":          {template: gitopsv1alpha1.HoldsInName, override: gitopsv1alpha1.HoldsInFields, does: sets, want: map[string]string{"a": "name", "b": "name"}},
		"an override that takes the mark":    {template: gitopsv1alpha1.HoldsInName, does: unmarks, want: map[string]string{"a": "name", "b": "name"}},
		"an override that takes its own one": {override: gitopsv1alpha1.HoldsInFields, does: unmarks, want: map[string]string{"a": "fields", "b": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			if tc.template != "" {
				in.Template.SetAnnotations(map[string]string{key: tc.template})
			}
			o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "op"}, Spec: policyv1alpha1.OverrideSpec{
				OverrideRules: []policyv1alpha1.RuleWithCluster{{TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}, Overriders: tc.does}},
			}}
			if tc.override != "" {
				o.Annotations = map[string]string{key: tc.override}
			}
			in.Overrides = []policyv1alpha1.Override{o}
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, p := range plans {
				if p.Err != nil {
					t.Fatal(p.Err)
				}
				got[p.Cluster] = object(t, string(p.Work.Spec.Workload.Manifests[0].Raw)).GetAnnotations()[key]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

// So is a Namespace that a cluster-wide override put some into.
func TestANamespaceThatAnOverridePutsASecretIntoIsMarked(t *testing.T) {
	const key = gitopsv1alpha1.HoldsSecretsAnnotation
	for annotation, want := range map[string]string{"": "", gitopsv1alpha1.HoldsInFields: "fields"} {
		o := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "cop", Annotations: map[string]string{key: annotation}}, Spec: policyv1alpha1.OverrideSpec{
			OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{
				Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"token": "canary"},
			}}}}},
		}}
		cluster, _ := clusters("a")("a")
		p := plan.Namespace(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u}}"), cluster, []policyv1alpha1.Override{o})
		if p.Err != nil {
			t.Fatal(p.Err)
		}
		if got := object(t, string(p.Work.Spec.Workload.Manifests[0].Raw)).GetAnnotations()[key]; got != want {
			t.Errorf("under an override marked %q it is marked %q, want %q", annotation, got, want)
		}
	}
}
