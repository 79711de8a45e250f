package nearmiss_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/explain/nearmiss"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func selecting(name string, selectors ...policyv1alpha1.ResourceSelector) policyv1alpha1.Policy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.ResourceSelectors = selectors
	return p
}

var web = selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}

func TestWhy(t *testing.T) {
	labelled := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}
	for name, tc := range map[string]struct {
		selector policyv1alpha1.ResourceSelector
		want     string
	}{
		"another kind":      {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}, ""},
		"another version":   {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "web"}, "selects it as apps/v1beta1, it is apps/v1"},
		"another group":     {policyv1alpha1.ResourceSelector{APIVersion: "other/v1", Kind: "Deployment", Name: "api"}, ""},
		"another namespace": {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shob", Name: "web"}, "selects Deployment in namespace shob"},
		"another name":      {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: "wep"}, "selects the Deployment named wep"},
		"other labels":      {policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: labelled}, "selects Deployment with labels app=api"},
		"another namespace and name": {
			policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shob", Name: "api"}, "",
		},
	} {
		if got := nearmiss.Why(selecting("p", tc.selector), web); got != tc.want {
			t.Errorf("%s: it says %q, want %q", name, got, tc.want)
		}
	}
}

// TestWhyNotWhatIsTheControlPlanesOwn checks that the reason is given why a
// policy for all of a kind does not select what the control plane made for
// itself.
func TestWhyNotWhatIsTheControlPlanesOwn(t *testing.T) {
	class := selector.Resource{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: "system-node-critical"}
	all := &policyv1alpha1.ClusterPropagationPolicy{}
	all.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: class.APIVersion, Kind: class.Kind}}
	const want = "the control plane made it for itself: only a selector with its name carries it"
	if got := nearmiss.Why(all, class); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestNearest(t *testing.T) {
	named := func(policy, name string) policyv1alpha1.Policy {
		return selecting(policy, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name})
	}
	frontend := web
	frontend.Name = "frontend"
	if got := nearmiss.Nearest([]policyv1alpha1.Policy{named("a", "checkout")}, frontend); got != nil {
		t.Errorf("%s is near", got.GetName())
	}
	got := nearmiss.Nearest([]policyv1alpha1.Policy{named("z", "frntd"), named("c", "fronted"), named("b", "frontendd")}, frontend)
	if got == nil || got.GetName() != "b" {
		t.Errorf("nearest is %v, want b", got)
	}
}
