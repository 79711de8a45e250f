package plan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// limitedTo is a quota of the namespace of the templates.
func limitedTo(names ...corev1.ResourceName) *policyv1alpha1.FederatedResourceQuota {
	overall := corev1.ResourceList{}
	for _, name := range names {
		overall[name] = resource.MustParse("2")
	}
	return &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: overall}}
}

// replacing is what an override of the template replaces.
func replacing(path, value string) policyv1alpha1.OverrideSpec {
	return policyv1alpha1.OverrideSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
		OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
			Path: path, Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte(value)},
		}}}}},
	}
}

// TestOverridesStayWithinQuotas: a quota counts what the binding says, so that overrides of
// its namespace may not ask for more of what it limits.
func TestOverridesStayWithinQuotas(t *testing.T) {
	const replicas, cpu = "/spec/replicas", "/spec/template/spec/containers/0/resources/requests/cpu"
	tenants := func(path, value string) policyv1alpha1.Override {
		return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}, Spec: replacing(path, value)}
	}
	everybodys := func(path, value string) policyv1alpha1.Override {
		return &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "o"}, Spec: replacing(path, value)}
	}
	removing := tenants(replicas, "0")
	removing.OverrideSpec().OverrideRules[0].Overriders.Plaintext[0] = policyv1alpha1.PlaintextOverrider{Path: replicas, Operator: policyv1alpha1.OverriderOpRemove}
	sidecar := tenants("/spec/template/spec/containers/-", `{"name": "b", "image": "nginx", "resources": {"limits": {"cpu": "10"}}}`)
	sidecar.OverrideSpec().OverrideRules[0].Overriders.Plaintext[0].Operator = policyv1alpha1.OverriderOpAdd
	cases := map[string]struct {
		quotas   []*policyv1alpha1.FederatedResourceQuota
		override policyv1alpha1.Override
		want     corev1.ResourceList // beyond the quota in cluster a, which has two replicas
	}{
		"a sidecar with limits alone":      {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}, sidecar, corev1.ResourceList{"cpu": resource.MustParse("20")}},
		"fewer replicas, as none are said": {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}, removing, nil},
		"more replicas":                    {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}, tenants(replicas, "7"), corev1.ResourceList{"cpu": resource.MustParse("2500m")}},
		"larger requests":                  {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}, tenants(cpu, `"5"`), corev1.ResourceList{"cpu": resource.MustParse("9")}},
		"one quota of two limits it":       {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("memory"), limitedTo("cpu")}, tenants(replicas, "3"), corev1.ResourceList{"cpu": resource.MustParse("500m")}},
		"what is not limited":              {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("memory")}, tenants(replicas, "7"), nil},
		"no quota":                         {nil, tenants(replicas, "7"), nil},
		"fewer replicas":                   {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}, tenants(replicas, "1"), nil},
		"something else":                   {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}, tenants("/spec/template/spec/containers/0/image", `"nginx:2"`), nil},
		"the word of who sets quotas":      {[]*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}, everybodys(replicas, "7"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Template = object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u}, spec: {replicas: 3, template: {spec: {containers: [{name: a, image: nginx, resources: {requests: {cpu: 500m}}}]}}}}`)
			in.Binding.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("500m")}}
			in.Overrides, in.Quotas = []policyv1alpha1.Override{tc.override}, tc.quotas
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			var want error
			if tc.want != nil {
				want = &plan.BeyondQuotaError{Namespace: "shop", Policies: []string{"o"}, Quotas: []string{"q"}, Beyond: tc.want}
			}
			if diff := cmp.Diff(want, plans[0].Err); diff != "" {
				t.Errorf("why cluster a gets no Work (-want +got):\n%s", diff)
			}
			if (plans[0].Work == nil) != (want != nil) {
				t.Errorf("the Work of cluster a is %v", plans[0].Work)
			}
		})
	}
}

// TestBeyondQuotaError: it is the text of an override that does not fit, for those who say what
// to do about one.
func TestBeyondQuotaError(t *testing.T) {
	err := &plan.BeyondQuotaError{Namespace: "shop", Policies: []string{"more", "larger"}, Quotas: []string{"team"}, Beyond: corev1.ResourceList{"cpu": resource.MustParse("2500m"), "memory": resource.MustParse("1Gi")}}
	want := "override policy shop/more: it has with larger the workload ask for 2500m of cpu and 1Gi of memory more than FederatedResourceQuota team counts: change replicas and requests in the template, which is what counts"
	if err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
	err.Redacted = true
	want = "override policy shop/more: it has with larger the workload ask for more of cpu and memory than FederatedResourceQuota team counts: change replicas and requests in the template, which is what counts"
	if err.Error() != want {
		t.Errorf("where text of a Secret is in it, it says %q, want %q", err, want)
	}
	if namespace, name, ok := override.FaultOf(err.Error()); !ok || namespace != "shop" || name != "more" {
		t.Errorf("it is read as about %s/%s, %t", namespace, name, ok)
	}
}

// TestWhatNobodySaysIsOneReplica: a number of replicas that an override takes out is one, and
// what an administrator's override raised is not what a tenant's asks for.
func TestWhatNobodySaysIsOneReplica(t *testing.T) {
	const replicas = "/spec/replicas"
	removed := replacing(replicas, "0")
	removed.OverrideRules[0].Overriders.Plaintext[0] = policyv1alpha1.PlaintextOverrider{Path: replicas, Operator: policyv1alpha1.OverriderOpRemove}
	tenants := func(spec policyv1alpha1.OverrideSpec) policyv1alpha1.Override {
		return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}, Spec: spec}
	}
	raised := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "raised"}, Spec: replacing(replicas, "5")}
	for name, tc := range map[string]struct {
		replicas  int32
		overrides []policyv1alpha1.Override
		beyond    string // cpu; empty for nothing
	}{
		"none, and the number is taken out":                       {0, []policyv1alpha1.Override{tenants(removed)}, "500m"},
		"an administrator raised it, and a tenant changes more":   {1, []policyv1alpha1.Override{raised, tenants(replacing("/spec/template/spec/containers/0/image", `"nginx:2"`))}, ""},
		"an administrator raised it, and a tenant raises further": {1, []policyv1alpha1.Override{raised, tenants(replacing(replicas, "6"))}, "500m"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Template = object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u}, spec: {replicas: 1, template: {spec: {containers: [{name: a, image: nginx, resources: {requests: {cpu: 500m}}}]}}}}`)
			spec := in.Binding.BindingSpec()
			spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("500m")}}
			spec.Replicas = tc.replicas
			for i := range spec.Clusters {
				spec.Clusters[i].Replicas = tc.replicas
			}
			in.Overrides, in.Quotas = tc.overrides, []*policyv1alpha1.FederatedResourceQuota{limitedTo("cpu")}
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if beyond := (*plan.BeyondQuotaError)(nil); errors.As(plans[0].Err, &beyond) {
				got = beyond.Beyond.Cpu().String()
			} else if plans[0].Err != nil {
				t.Fatal(plans[0].Err)
			}
			if got != tc.beyond {
				t.Errorf("%q of cpu beyond the quota, want %q", got, tc.beyond)
			}
		})
	}
}
