package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestTemplatesOfOneBindingName has two kinds of one name, in two API groups: the
// names of their bindings are the same, and only one of them can have it.
func TestTemplatesOfOneBindingName(t *testing.T) {
	const core, knative = "v1", "serving.knative.dev/v1"
	fleet := func(bindings []workv1alpha2.Binding, groups ...string) map[string]string {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
		in := plan.FleetInput{Interpreter: interpreter.Native(), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Clusters: []*clusterv1alpha1.Cluster{c}, Bindings: bindings}
		policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
		for _, group := range groups {
			c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: group, Resources: []clusterv1alpha1.APIResource{{Kind: "Service"}}})
			policy.Spec.ResourceSelectors = append(policy.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: group, Kind: "Service"})
			in.Templates = append(in.Templates, object(t, `{apiVersion: `+group+`, kind: Service, metadata: {namespace: shop, name: web}}`))
		}
		in.Policies = []policyv1alpha1.Policy{policy}
		got := map[string]string{}
		for _, p := range plan.Fleet(in) {
			switch {
			case p.Err != nil:
				got[p.Resource.APIVersion] = p.Err.Error()
			case p.Binding != nil && len(p.Works) == 1:
				got[p.Resource.APIVersion] = "carried by the binding of " + p.Binding.BindingSpec().Resource.APIVersion
			}
		}
		return got
	}
	stored := func(group string) []workv1alpha2.Binding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-service", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b"},
		}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: group, Kind: "Service", Namespace: "shop", Name: "web"}
		return []workv1alpha2.Binding{b}
	}
	const taken = "the name of its binding, shop/web-service, is taken by "
	cases := map[string]struct {
		bindings []workv1alpha2.Binding
		groups   []string
		want     map[string]string
	}{
		"both are new: the first has it": {
			groups: []string{core, knative},
			want:   map[string]string{core: "carried by the binding of " + core, knative: taken + core + " Service web: rename one of the two"},
		},
		"the one that has it keeps it": {
			bindings: stored(knative), groups: []string{core, knative},
			want: map[string]string{knative: "carried by the binding of " + knative, core: taken + knative + " Service web: rename one of the two"},
		},
		"one of the same group in another version is the same": {
			bindings: stored("serving.knative.dev/v1beta1"), groups: []string{knative},
			want: map[string]string{knative: "carried by the binding of " + knative},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fleet(tc.bindings, tc.groups...)); diff != "" {
				t.Errorf("templates (-want +got):\n%s", diff)
			}
		})
	}
}
