package health_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// TestWhatIsAskedForNow: an object that is healthy under policies and overrides which have changed since is not healthy
// yet, even if it is assessed before other loops have seen the change.
func TestWhatIsAskedForNow(t *testing.T) {
	policy := func(name string, edit ...func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.PropagationPolicy {
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		p.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: name}
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
		for _, e := range edit {
			e(&p.Spec)
		}
		return p
	}
	alsoWest := func(s *policyv1alpha1.PropagationSpec) {
		s.Placement.ClusterAffinity.ClusterNames = []string{"east", "west"}
	}
	lazy := func(s *policyv1alpha1.PropagationSpec) { s.ActivationPreference = policyv1alpha1.LazyActivation }
	elsewhere := func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Kind = "Secret" }
	takes := func(s *policyv1alpha1.PropagationSpec) {
		s.Preemption, s.Priority = policyv1alpha1.PreemptAlways, new(int32)
		*s.Priority = 1
	}
	needs := func(s *policyv1alpha1.PropagationSpec) { s.DependentOverrides = []string{"missing"} }
	labels := func(value string, clusters ...string) *policyv1alpha1.OverridePolicy {
		o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "labels"}}
		o.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
			Overriders:    policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: "add", Value: map[string]string{"a": value}}}},
		}}
		return o
	}
	const waits, isPending = "waits to be taken up by its policy", "east: " + rollup.OverridesPending
	change := func(p string) string { return "waits for a change of PropagationPolicy shop/" + p + " to be taken up" }
	for name, tc := range map[string]struct {
		carried  *policyv1alpha1.PropagationPolicy // what the binding is made of
		made     []policyv1alpha1.Override         // what the Work is made with
		now      []client.Object                   // what there is
		forceful bool                              // preemption is on
		want     string                            // empty: healthy
	}{
		"nothing has changed":                  {carried: policy("p"), now: []client.Object{policy("p")}},
		"one cluster more":                     {carried: policy("p"), now: []client.Object{policy("p", alsoWest)}, want: change("p")},
		"one cluster more, and it is Lazy":     {carried: policy("p", lazy), now: []client.Object{policy("p", lazy, alsoWest)}},
		"it waits for an override":             {carried: policy("p"), now: []client.Object{policy("p", needs, alsoWest)}},
		"its policy is gone":                   {carried: policy("p"), want: waits},
		"its policy does not select it now":    {carried: policy("p"), now: []client.Object{policy("p", elsewhere)}, want: waits},
		"another one takes it":                 {carried: policy("p"), now: []client.Object{policy("p"), policy("q", takes)}, forceful: true, want: waits},
		"another one would, without a right":   {carried: policy("p"), now: []client.Object{policy("p"), policy("q", takes)}},
		"made with the overrides that are":     {carried: policy("p"), made: []policyv1alpha1.Override{labels("1", "east")}, now: []client.Object{policy("p"), labels("1", "east")}},
		"an override is new":                   {carried: policy("p"), now: []client.Object{policy("p"), labels("1", "east")}, want: isPending},
		"one is new that means others":         {carried: policy("p"), now: []client.Object{policy("p"), labels("1", "west")}},
		"one says otherwise":                   {carried: policy("p"), made: []policyv1alpha1.Override{labels("1", "east")}, now: []client.Object{policy("p"), labels("2", "east")}, want: isPending},
		"one is gone":                          {carried: policy("p"), made: []policyv1alpha1.Override{labels("1", "east")}, now: []client.Object{policy("p")}, want: isPending},
		"no policy carries it, and none would": {now: nil},
	} {
		t.Run(name, func(t *testing.T) {
			template := object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"conf","uid":"u"}}`)
			if tc.carried != nil {
				propagation.ClaimOf(tc.carried).Set(template)
			}
			b := binding(t, template)
			if tc.carried != nil {
				propagation.ClaimOf(tc.carried).Set(b)
				spec := propagation.BindingSpec(propagation.Template{Object: template}, tc.carried, &b.Spec)
				spec.Clusters, spec.Resource = b.Spec.Clusters, b.Spec.Resource
				b.Spec = spec
			}
			east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			applied, err := override.Matching(tc.made, selector.ResourceOf(template)).Apply(template.DeepCopy(), east)
			if err != nil {
				t.Fatal(err)
			}
			w := work(b)
			w.Annotations = maps.Clone(b.Annotations)
			maps.Copy(w.Annotations, applied.Annotations())
			entry := entryOf(template)
			hub := hubOf(slices.Concat(tc.now, []client.Object{b, w, east})...)
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(template): template}, NoPreemption: !tc.forceful})
			got, err := reader.Assess(t.Context(), health.Request{Entries: []inventory.Entry{entry}, Observed: map[inventory.ID]*unstructured.Unstructured{entry.ID: template}, As: hub})
			if err != nil {
				t.Fatal(err)
			}
			want := health.Verdict{ID: entry.ID, State: rollup.Healthy, Reason: tc.want}
			if tc.want != "" {
				want.State = rollup.Progressing
			}
			if diff := cmp.Diff([]health.Verdict{want}, got.Verdicts); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			parts, err := reader.Parts(t.Context(), owner, []inventory.Entry{entry})
			if err != nil {
				t.Fatal(err)
			}
			if sum := rollup.Revision(parts); (sum.State == rollup.StateSuccess) != (tc.want == "") {
				t.Errorf("the commit says %s: %s", sum.State, sum.Description)
			}
		})
	}
}
