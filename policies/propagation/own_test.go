package propagation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func wide(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	return obj
}

// TestWhatTheControlPlaneMadeForItself checks that it is carried where a selector
// names it, and not where one selects all of its kind, or its labels.
func TestWhatTheControlPlaneMadeForItself(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io/v1"
	kubernetes := map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
	ours := map[string]string{"karmada.io/bootstrapping": "rbac-defaults"}
	cases := map[string]struct {
		template *unstructured.Unstructured
		own      bool
	}{
		"a priority class of Kubernetes":            {wide("scheduling.k8s.io/v1", "PriorityClass", "", "system-node-critical", nil), true},
		"a priority class of somebody":              {wide("scheduling.k8s.io/v1", "PriorityClass", "", "shop-critical", nil), false},
		"a role of Kubernetes":                      {wide(rbac, "ClusterRole", "", "view", kubernetes), true},
		"one of the control plane":                  {wide(rbac, "ClusterRoleBinding", "", "karmada:agent-bootstrap", ours), true},
		"one for the agent of a cluster":            {wide(rbac, "ClusterRole", "", "system:karmada:edge:agent", map[string]string{"registration.flotilla.io/cluster": "edge"}), true},
		"a role of somebody":                        {wide(rbac, "ClusterRole", "", "shop", map[string]string{"kubernetes.io/bootstrapping": "other"}), false},
		"the label on something else":               {wide("v1", "ConfigMap", "shop", "web", kubernetes), false},
		"the definition of a kind of the fleet":     {wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "works.work.karmada.io", nil), true},
		"of one that clusters have, too":            {wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "serviceimports.multicluster.x-k8s.io", nil), false},
		"of a kind of somebody":                     {wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "backups.shop.io", nil), false},
		"an API that is registered by itself":       {wide("apiregistration.k8s.io/v1", "APIService", "", "v1.apps", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}), true},
		"an API of somebody":                        {wide("apiregistration.k8s.io/v1", "APIService", "", "v1beta1.metrics.k8s.io", nil), false},
		"a level of priority of Kubernetes":         {wide("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "", "workload-low", nil), true},
		"a flow of Kubernetes":                      {wide("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "", "catch-all", nil), true},
		"a flow of somebody":                        {wide("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "", "shop", nil), false},
		"the Service of the API server":             {wide("v1", "Service", "default", "kubernetes", nil), true},
		"a Service of that name":                    {wide("v1", "Service", "shop", "kubernetes", nil), false},
		"its addresses":                             {wide("discovery.k8s.io/v1", "EndpointSlice", "default", "kubernetes", nil), true},
		"its address":                               {wide("networking.k8s.io/v1", "IPAddress", "", "10.96.0.1", map[string]string{"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}), true},
		"the range of the control plane's Services": {wide("networking.k8s.io/v1", "ServiceCIDR", "", "kubernetes", nil), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selects := func(edit func(*policyv1alpha1.ResourceSelector)) string {
				s := policyv1alpha1.ResourceSelector{APIVersion: tc.template.GetAPIVersion(), Kind: tc.template.GetKind()}
				edit(&s)
				p := policy("", "p", s)
				return decided(propagation.Decide(propagation.Case{Template: tc.template, Candidates: []policyv1alpha1.Policy{p}}))
			}
			got := []string{
				selects(func(*policyv1alpha1.ResourceSelector) {}),
				selects(func(s *policyv1alpha1.ResourceSelector) { s.Name = tc.template.GetName() }),
			}
			want := []string{"Carried p", "Carried p"}
			if tc.own {
				want[0] = "Released -"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("by kind, and by name (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWasCarriedBefore checks that such an object is released where a policy
// for all of its kind had claimed it, and claimed by a policy that names it.
func TestWhatWasCarriedBefore(t *testing.T) {
	class := wide("scheduling.k8s.io/v1", "PriorityClass", "", "system-node-critical", nil)
	all := policy("", "all", policyv1alpha1.ResourceSelector{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"})
	named := policy("", "named", policyv1alpha1.ResourceSelector{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: class.GetName()})
	propagation.ClaimOf(all).Set(class)
	decide := func(policies ...policyv1alpha1.Policy) string {
		d := propagation.Decide(propagation.Case{Template: class, Candidates: policies, Owner: all})
		return decided(d) + ": " + d.Why
	}
	want := []string{
		"Released -: the control plane made it for itself: only a selector with its name carries it",
		"Carried named: ClusterPropagationPolicy named, selected by name",
	}
	if diff := cmp.Diff(want, []string{decide(all), decide(all, named)}); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	verdicts := propagation.Verdicts(propagation.Case{Template: class, Candidates: []policyv1alpha1.Policy{all}, Owner: all})
	if diff := cmp.Diff([]propagation.Verdict{{
		Policy: propagation.RefOf(all), Kind: "ClusterPropagationPolicy", Outcome: propagation.NotSelected,
		Why: "the control plane made it for itself: only a selector with its name carries it",
	}}, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
