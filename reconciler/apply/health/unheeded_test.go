package health_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// TestUnheeded: a policy that does not get a template, as another policy keeps it, is reported, whoever wrote the
// other one.
func TestUnheeded(t *testing.T) {
	other := client.ObjectKey{Namespace: "team", Name: "other"}
	policy := func(name string, by client.ObjectKey, edit ...func(*policyv1alpha1.PropagationPolicy)) *policyv1alpha1.PropagationPolicy {
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: inventory.OwnerLabels(by)}}
		p.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = name
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
		for _, e := range edit {
			e(p)
		}
		return p
	}
	lazy := func(p *policyv1alpha1.PropagationPolicy) { p.Spec.ActivationPreference = policyv1alpha1.LazyActivation }
	entry := inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "conf", GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, Version: "v1"}
	unheeded := func(text string) []rollup.Part {
		return []rollup.Part{{Object: "ConfigMap shop/conf", Unheeded: text, Contested: strings.Contains(text, "keeps it")}}
	}
	for name, tc := range map[string]struct {
		by       client.ObjectKey // who applied the template
		policies []client.Object  // the first has claimed it
		want     []rollup.Part
	}{
		"one that is left over keeps it": {owner, []client.Object{policy("old", other), policy("new", owner)}, unheeded(
			"by PropagationPolicy shop/new, as PropagationPolicy shop/old keeps it: delete that, or have the first preempt it")},
		"a policy of another Kustomization": {owner, []client.Object{policy("old", other), policy("new", other)}, nil},
		"nobody else asks for it":           {owner, []client.Object{policy("old", owner)}, nil},
		"it is Lazy":                        {owner, []client.Object{policy("old", owner, lazy)}, unheeded("by PropagationPolicy shop/old before its next change, as that is Lazy")},
		"the template is another's":         {other, []client.Object{policy("old", other), policy("new", owner)}, nil},
		"no policy is there":                {owner, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			template := object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"conf","uid":"u"}}`)
			template.SetLabels(inventory.OwnerLabels(tc.by))
			if len(tc.policies) > 0 {
				p := tc.policies[0].(policyv1alpha1.Policy)
				claim := propagation.ClaimOf(p)
				claim.Set(template)
				if p.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation {
					edition, err := propagation.Edition(template)
					if err != nil {
						t.Fatal(err)
					}
					annotations := template.GetAnnotations()
					annotations[propagation.WaitsAnnotation] = edition
					template.SetAnnotations(annotations)
				}
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.policies...).Build()
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(template): template}})
			got, err := reader.Unheeded(t.Context(), owner, []inventory.Entry{entry})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
