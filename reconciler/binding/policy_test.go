package binding_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func labelled(key, value string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

// holder returns the name of the policy that claims a Deployment, and the one
// that its binding names.
func (f *fleet) holder(name string) [2]string {
	f.Helper()
	var out [2]string
	d := &appsv1.Deployment{}
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKey{Namespace: f.ns, Name: name}, d))
	ref, _ := propagation.Claimed(d)
	out[0] = ref.Name
	if b := f.binding("Deployment", name); b != nil {
		ref, _ = propagation.Claimed(b)
		out[1] = ref.Name
	}
	return out
}

// ready returns the reason of a policy's condition.
func (f *fleet) ready(p policyv1alpha1.Policy) string {
	f.Helper()
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKey{Namespace: p.GetNamespace(), Name: p.GetName()}, p))
	c := meta.FindStatusCondition(p.PropagationStatus().Conditions, policyv1alpha1.PolicyReady)
	if c == nil || c.ObservedGeneration != p.GetGeneration() {
		return ""
	}
	return c.Reason
}

func TestPolicyAfterTemplate(t *testing.T) {
	f := newFleet(t, "a")
	f.create(f.deployment("web"), f.deployment("other"))
	f.awaitIdle()
	policy := f.policy("late", labelled("app", "web"))
	f.create(policy)
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
	f.wrote("a policy for one template that is there", map[string]int{
		"PATCH propagationpolicies/status": 1, "PATCH deployments": 1, "POST resourcebindings": 1, "POST works": 1,
	})
	if got := f.ready(policy); got != policyv1alpha1.PolicyReasonMatched {
		t.Errorf("policy is %q", got)
	}
	if b := f.binding("Deployment", "other"); b != nil {
		t.Errorf("a template that is not selected has binding %s", b.Name)
	}
}

func TestSelectorEdits(t *testing.T) {
	f := newFleet(t, "a")
	policy := f.policy("p", labelled("app", "web"))
	f.create(policy, f.deployment("web"), f.deployment("api"))
	eventually(f, "holder of web", [2]string{"p", "p"}, func() [2]string { return f.holder("web") })
	f.awaitIdle()

	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{labelled("app", "api")}
	})
	eventually(f, "holder of api", [2]string{"p", "p"}, func() [2]string { return f.holder("api") })
	eventually(f, "holder of web", [2]string{}, func() [2]string { return f.holder("web") })
	f.wrote("a selector that means another template", map[string]int{
		"PATCH propagationpolicies/status": 1,
		"PATCH deployments":                2, "POST resourcebindings": 1, "PATCH resourcebindings": 1, "POST works": 1, "PATCH works": 1,
	})
	if got := f.images("web"); !cmp.Equal(got, map[string]string{"a": "2x1"}) {
		t.Errorf("what ran must run on: %v", got)
	}

	web := f.deployment("web")
	edit(f, web, func(d *appsv1.Deployment) { d.Labels["app"] = "api" })
	eventually(f, "holder of web after its label changed", [2]string{"p", "p"}, func() [2]string { return f.holder("web") })
}

func TestPrecedence(t *testing.T) {
	f := newFleet(t, "a", "b")
	low, high := f.policy("low", labelled("app", "web")), f.policy("high", deployments(""))
	high.Spec.Priority = ptr.To[int32](5)
	high.Spec.Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("b")}}}
	f.create(low, high)
	f.create(f.deployment("web")) // once both policies are known, as what is claimed stays so
	eventually(f, "images", map[string]string{"b": "2x1"}, func() map[string]string { return f.images("web") })
	f.awaitIdle()

	f.check(f.env.Hub.Delete(f.Context(), high))
	eventually(f, "images under the other policy", map[string]string{"a": "2x1", "b": "2x1"}, func() map[string]string { return f.images("web") })
	eventually(f, "holder", [2]string{"low", "low"}, func() [2]string { return f.holder("web") })
	eventually(f, "policy gone", true, func() bool {
		return apierrors.IsNotFound(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(high), high))
	})
	f.wrote("a policy that goes and hands over", map[string]int{
		"PATCH deployments": 1, "PATCH resourcebindings": 1, "POST works": 1, "PATCH works": 1, "PATCH propagationpolicies": 1,
	})

	f.check(f.env.Hub.Delete(f.Context(), low))
	eventually(f, "holder", [2]string{}, func() [2]string { return f.holder("web") })
	eventually(f, "policy gone", true, func() bool {
		return apierrors.IsNotFound(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(low), low))
	})
	f.wrote("the last policy goes", map[string]int{
		"PATCH deployments": 1, "PATCH resourcebindings": 1, "PATCH works": 2, "PATCH propagationpolicies": 1,
	})

	web := f.deployment("web")
	edit(f, web, func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 })
	f.wrote("an edit of a template that no policy carries", map[string]int{})
	f.stop()
	f.start()
	f.wrote("a restart after that", map[string]int{})
	if got := f.images("web"); !cmp.Equal(got, map[string]string{"a": "2x1", "b": "2x1"}) {
		t.Errorf("what ran must run on: %v", got)
	}
}

func TestWaitsForOverrides(t *testing.T) {
	f := newFleet(t, "a")
	policy := f.policy("p", deployments("web"))
	policy.Spec.DependentOverrides = []string{"tag"}
	f.create(policy, f.deployment("web"))
	eventually(f, "policy", policyv1alpha1.PolicyReasonWaitingForOverrides, func() string { return f.ready(policy) })
	f.wrote("waiting", map[string]int{"PATCH propagationpolicies/status": 1})
	f.create(f.imageTag("tag", "web", "9", "a"))
	eventually(f, "images", map[string]string{"a": "2x9"}, func() map[string]string { return f.images("web") })
	eventually(f, "policy", policyv1alpha1.PolicyReasonMatched, func() string { return f.ready(policy) })
}

func TestKindInstalledLater(t *testing.T) {
	f := newFleet(t, "a")
	policy := f.policy("p", policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: "Widget"})
	f.create(policy)
	eventually(f, "policy", policyv1alpha1.PolicyReasonUnknownAPI, func() string { return f.ready(policy) })
	crd := definition("Widget", "widgets")
	f.create(crd)
	t.Cleanup(func() { removeDefinition(f, crd) })
	eventually(f, "policy", policyv1alpha1.PolicyReasonMatched, func() string { return f.ready(policy) })
	widget := custom(f.ns, "Widget", "left")
	eventually(f, "created", true, func() bool { return f.env.Hub.Create(f.Context(), widget) == nil })
	eventually(f, "works", 1, func() int { return len(f.works("Widget", "left")) })

	f.check(f.env.Hub.Delete(f.Context(), crd))
	eventually(f, "policy", policyv1alpha1.PolicyReasonUnknownAPI, func() string { return f.ready(policy) })
	eventually(f, "works", 0, func() int { return len(f.works("Widget", "left")) })
}

// TestSameNameInAnotherGroup: of two templates whose bindings would have the same
// name, the first keeps it; the second reports that, and gets it once it is free.
func TestSameNameInAnotherGroup(t *testing.T) {
	f := newFleet(t, "a")
	crd := definition("Deployment", "deployments")
	f.create(crd)
	t.Cleanup(func() { removeDefinition(f, crd) })
	policy := f.policy("p", deployments("web"), policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: "Deployment"})
	f.create(policy)
	web := f.deployment("web")
	f.create(web)
	eventually(f, "works", 1, func() int { return len(f.works("Deployment", "web")) })
	eventually(f, "policy", policyv1alpha1.PolicyReasonMatched, func() string { return f.ready(policy) }) // or it says so later
	f.awaitIdle()
	other := custom(f.ns, "Deployment", "web")
	eventually(f, "created", true, func() bool { return f.env.Hub.Create(f.Context(), other) == nil })
	eventually(f, "event", 1, func() int { return f.events.reasons()["Deployment ApplyPolicyFailed"] })
	f.wrote("a template whose binding's name is taken", map[string]int{})
	f.check(f.env.Hub.Delete(f.Context(), web))
	eventually(f, "owner", "example.com/v1", func() string {
		if b := f.binding("Deployment", "web"); b != nil {
			return b.Spec.Resource.APIVersion
		}
		return ""
	})
}

func TestClusterScope(t *testing.T) {
	f := newFleet(t, "a")
	policy := &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{
				{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: f.ns},
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns},
			},
			Placement: f.policy("p").Spec.Placement,
		},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "settings"}, Data: map[string]string{"a": "<&>"}}
	f.create(policy, role, settings)
	bound := func() []string {
		b := &workv1alpha2.ClusterResourceBinding{}
		if f.env.Hub.Get(f.Context(), client.ObjectKey{Name: f.ns + "-clusterrole"}, b) != nil {
			return nil
		}
		return clusterNames(b)
	}
	eventually(f, "clusters of the role", []string{f.cluster("a")}, bound)
	eventually(f, "works of the settings", 1, func() int { return len(f.works("ConfigMap", "settings")) })
	f.awaitIdle()
	f.stop()
	f.start()
	f.wrote("a restart", map[string]int{})

	f.check(f.env.Hub.Delete(f.Context(), policy))
	eventually(f, "policy gone", true, func() bool {
		return apierrors.IsNotFound(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(policy), policy))
	})
	f.check(f.env.Hub.Delete(f.Context(), role))
	eventually(f, "binding of the role", []string(nil), bound)
}

func clusterNames(b workv1alpha2.Binding) []string {
	var out []string
	for _, c := range b.BindingSpec().Clusters {
		out = append(out, c.Name)
	}
	return out
}

func definition(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

// removeDefinition deletes a kind's definition, if it still exists, and waits until it is
// gone.
func removeDefinition(f *fleet, crd *apiextensionsv1.CustomResourceDefinition) {
	eventually(f, "definition gone", true, func() bool {
		return apierrors.IsNotFound(f.env.Hub.Delete(f.Context(), crd))
	})
}

func custom(namespace, kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// TestPolicySaysWhatItDoesNotDo: a policy that carries nothing, and one that names a
// cluster that does not exist, report that for as long as it is so.
func TestPolicySaysWhatItDoesNotDo(t *testing.T) {
	f := newFleet(t, "a")
	f.stop()
	f.statusEvery = 50 * time.Millisecond
	f.start()
	idle, typo := f.policy("idle", deployments("web")), f.policy("typo", deployments("api"))
	typo.Spec.Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a"), f.cluster("a") + "x"}}}
	f.create(f.deployment("api"), idle, typo)
	eventually(f, "what selects nothing", policyv1alpha1.PolicyReasonNothingSelected, func() string { return f.ready(idle) })
	misnamed := f.policy("misnamed", deployments("apii"))
	f.create(misnamed)
	eventually(f, "what mistypes a name", fmt.Sprintf("it carries nothing: it names Deployment %[1]s/apii (did you mean Deployment %[1]s/api?)", f.ns), func() string {
		if f.ready(misnamed) != policyv1alpha1.PolicyReasonNothingSelected {
			return ""
		}
		return meta.FindStatusCondition(misnamed.Status.Conditions, policyv1alpha1.PolicyReady).Message
	})
	// Until its template is bound, its status also says that it carries nothing.
	want := fmt.Sprintf("UnknownCluster: clusterNames names %[1]sx, which does not exist (did you mean %[1]s?)", f.cluster("a"))
	eventually(f, "what names nobody", want, func() string {
		reason := f.ready(typo)
		if reason == "" {
			return ""
		}
		return reason + ": " + meta.FindStatusCondition(typo.Status.Conditions, policyv1alpha1.PolicyReady).Message
	})
	f.create(f.deployment("web"))
	eventually(f, "what selects something now", policyv1alpha1.PolicyReasonMatched, func() string { return f.ready(idle) })
	f.join("ax", nil)
	eventually(f, "what names a cluster that has joined", policyv1alpha1.PolicyReasonMatched, func() string { return f.ready(typo) })
}
