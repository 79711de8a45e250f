package binding_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestAnOverrideDoesNotGetAroundAQuota: resources that an override of a namespace adds are not counted
// by any quota, so that they are not sent to clusters while a quota limits them.
func TestAnOverrideDoesNotGetAroundAQuota(t *testing.T) {
	f := newFleet(t, "a")
	web := f.deployment("web")
	web.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	f.create(f.policy("all", deployments("")), web)
	replicas := func() map[string]string { return f.images("web") }
	eventually(f, "what runs", map[string]string{"a": "2x1"}, replicas)

	limit := &policyv1alpha1.FederatedResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "team"},
		Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
	}
	more := f.imageTag("more", "web", "1", "a")
	more.Spec.OverrideRules[0].Overriders = policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
		Path: "/spec/replicas", Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte("7")},
	}}}
	f.create(limit)
	f.awaitIdle()
	f.create(more)
	fault := func() bool {
		return strings.Contains(f.works("Deployment", "web")["a"].Annotations[propagation.FaultAnnotation], "ask for 2500m of cpu more")
	}
	eventually(f, "whether the Work says so", true, fault)
	eventually(f, "what runs under a quota", map[string]string{"a": "2x1"}, replicas)

	f.check(f.env.Hub.Delete(f.Context(), limit))
	eventually(f, "what runs without a quota", map[string]string{"a": "7x1"}, replicas)
}

// TestWhatKeepsAClusterFromItsFirstWorkIsNoted: on the binding, as there is no Work yet.
func TestWhatKeepsAClusterFromItsFirstWorkIsNoted(t *testing.T) {
	f := newFleet(t, "a", "b")
	bad := f.imageTag("bad", "web", "1", "b")
	bad.Spec.OverrideRules[0].Overriders = policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/missing/field", Operator: policyv1alpha1.OverriderOpRemove}}}
	f.create(bad)
	f.awaitIdle()
	f.create(f.policy("all", deployments("")), f.deployment("web"))
	noted := func() map[string]bool {
		out := map[string]bool{}
		b := f.binding("Deployment", "web")
		if b == nil {
			return out
		}
		for cluster, fault := range propagation.ClusterFaultsOf(b) {
			out[strings.TrimPrefix(cluster, f.ns+"-")] = strings.HasPrefix(fault, "override policy "+f.ns+"/bad: ")
		}
		return out
	}
	eventually(f, "clusters of which the binding says why they have no Work", map[string]bool{"b": true}, noted)
	f.check(f.env.Hub.Delete(f.Context(), bad))
	eventually(f, "what is said once all have one", map[string]bool{}, noted)
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x1"}, func() map[string]string { return f.images("web") })
}
