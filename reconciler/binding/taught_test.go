package binding_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// gadgets installs a kind for which there are no rules, a policy that divides
// gadgets evenly, and one gadget.
func gadgets(f *fleet) *unstructured.Unstructured {
	f.Helper()
	crd := definition("Gadget", "gadgets")
	f.create(crd)
	f.Cleanup(func() { removeDefinition(f, crd) })
	policy := f.policy("gadgets", policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: "Gadget"})
	policy.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
	f.create(policy)
	eventually(f, "policy", policyv1alpha1.PolicyReasonMatched, func() string { return f.ready(policy) })
	gadget := custom(f.ns, "Gadget", "g")
	gadget.Object["spec"].(map[string]any)["size"] = int64(4)
	eventually(f, "created", true, func() bool { return f.env.Hub.Create(f.Context(), gadget) == nil })
	f.Cleanup(func() { f.check(client.IgnoreNotFound(f.env.Hub.Delete(f.Context(), gadget))) })
	return gadget
}

// sizes returns the replicas of the gadget's binding and the size that each
// cluster should have.
func (f *fleet) sizes() map[string]int64 {
	f.Helper()
	out := map[string]int64{}
	if b := f.binding("Gadget", "g"); b != nil {
		out["replicas"] = int64(b.Spec.Replicas)
	}
	for cluster, w := range f.works("Gadget", "g") {
		var manifest struct{ Spec struct{ Size int64 } }
		f.check(json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &manifest))
		out[cluster] = manifest.Spec.Size
	}
	return out
}

// taught returns the rules of a customization for gadgets, which compute the replicas by an
// expression.
func taught(replicas string) configv1alpha1.CustomizationRules {
	script := func(text string) *configv1alpha1.CustomizationScript {
		return &configv1alpha1.CustomizationScript{LuaScript: text}
	}
	return configv1alpha1.CustomizationRules{
		ReplicaResource: script("function GetReplicas(obj) return " + replicas + ", nil end"),
		ReplicaRevision: script("function ReviseReplica(obj, replica) obj.spec.size = replica return obj end"),
	}
}

// teacher creates a customization that computes the replicas of gadgets.
func (f *fleet) teacher(replicas string) *configv1alpha1.ResourceInterpreterCustomization {
	f.Helper()
	out := &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target:         configv1alpha1.CustomizationTarget{APIVersion: "example.com/v1", Kind: "Gadget"},
			Customizations: taught(replicas),
		},
	}
	f.create(out)
	f.Cleanup(func() { f.check(client.IgnoreNotFound(f.env.Hub.Delete(f.Context(), out))) })
	return out
}

// A policy whose templates cannot be claimed from the start reports that, also after a restart, and
// not that it selects nothing.
func TestTaughtWronglyFromTheStart(t *testing.T) {
	f := newFleet(t, "a")
	f.stop()
	f.statusEvery = 50 * time.Millisecond
	f.start()
	teacher := f.teacher("obj.spec.missing.size")
	gadgets(f)
	policy := f.policy("gadgets", policyv1alpha1.ResourceSelector{})
	says := func() string {
		reason := f.ready(policy)
		if reason != policyv1alpha1.PolicyReasonNotTakenUp {
			return reason
		}
		return strings.Split(meta.FindStatusCondition(policy.Status.Conditions, policyv1alpha1.PolicyReady).Message, ": ")[0]
	}
	want := "it could not take up Gadget " + f.ns + "/g"
	eventually(f, "what the policy says", want, says)
	f.awaitIdle()
	f.stop()
	f.start()
	f.wrote("a restart", map[string]int{})
	edit(f, teacher, func(c *configv1alpha1.ResourceInterpreterCustomization) {
		c.Spec.Customizations = taught("obj.spec.size")
	})
	eventually(f, "corrected", policyv1alpha1.PolicyReasonMatched, says)
}

// A kind gets rules, other rules, wrong rules, and none again, while its templates
// exist all the time.
func TestTaughtByScript(t *testing.T) {
	f := newFleet(t, "a", "b")
	gadgets(f)
	unknown := map[string]int64{"replicas": 0, "a": 4, "b": 4}
	eventually(f, "before anybody says what a gadget is", unknown, f.sizes)

	teacher := f.teacher("obj.spec.size")
	known := map[string]int64{"replicas": 4, "a": 2, "b": 2}
	eventually(f, "taught", known, f.sizes)

	f.awaitIdle()
	f.stop()
	f.start()
	f.wrote("a restart", map[string]int{})

	say := func(replicas string) {
		edit(f, teacher, func(c *configv1alpha1.ResourceInterpreterCustomization) { c.Spec.Customizations = taught(replicas) })
	}
	say("obj.spec.size * 2")
	eventually(f, "taught anew", map[string]int64{"replicas": 8, "a": 4, "b": 4}, f.sizes)

	f.awaitIdle()
	say("obj.spec.missing.size")
	eventually(f, "events about a rule that fails", map[string]int{"Gadget GetReplicasFailed": 1}, f.failures)
	f.wrote("a rule that fails", map[string]int{})

	say("obj.spec.size")
	eventually(f, "corrected", known, f.sizes)

	f.check(f.env.Hub.Delete(f.Context(), teacher))
	eventually(f, "forgotten", unknown, f.sizes)
}

// failures returns how often each reason of a failure was reported.
func (f *fleet) failures() map[string]int {
	out := map[string]int{}
	for reason, n := range f.events.reasons() {
		if strings.HasSuffix(reason, "Failed") {
			out[reason] = n
		}
	}
	return out
}

// A server answers for a kind: slowly, then not at all, then again.
func TestTaughtByServer(t *testing.T) {
	f := newFleet(t, "a", "b")
	var down atomic.Bool
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		var in configv1alpha1.ResourceInterpreterContext
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
			return
		}
		in.Response = &configv1alpha1.ResourceInterpreterResponse{UID: in.Request.UID, Successful: true}
		switch in.Request.Operation {
		case configv1alpha1.InterpreterOperationInterpretReplica:
			var obj unstructured.Unstructured
			if err := json.Unmarshal(in.Request.Object.Raw, &obj.Object); err != nil {
				t.Error(err)
			}
			size, _, _ := unstructured.NestedFloat64(obj.Object, "spec", "size")
			in.Response.Replicas = ptr.To(int32(size))
		case configv1alpha1.InterpreterOperationReviseReplica:
			in.Response.PatchType = ptr.To(configv1alpha1.PatchTypeJSONPatch)
			in.Response.Patch = fmt.Appendf(nil, `[{"op":"replace","path":"/spec/size","value":%d}]`, *in.Request.DesiredReplicas)
		default:
			t.Errorf("was asked about %s", in.Request.Operation)
		}
		in.Request = nil
		if err := json.NewEncoder(w).Encode(in); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	asked := []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretReplica, configv1alpha1.InterpreterOperationReviseReplica}
	teacher := &configv1alpha1.ResourceInterpreterWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns},
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
			Name: "gadgets.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: ptr.To(s.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
			},
			Rules: []configv1alpha1.RuleWithOperations{{
				Operations: asked, Rule: configv1alpha1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"*"}, Kinds: []string{"Gadget"}},
			}},
			InterpreterContextVersions: []string{"v1alpha1"},
		}},
	}
	f.create(teacher)
	t.Cleanup(func() { f.check(client.IgnoreNotFound(f.env.Hub.Delete(f.Context(), teacher))) })
	gadget := gadgets(f)
	eventually(f, "taught", map[string]int64{"replicas": 4, "a": 2, "b": 2}, f.sizes)

	f.awaitIdle()
	f.stop()
	f.start()
	f.wrote("a restart", map[string]int{})

	f.awaitIdle()
	down.Store(true)
	edit(f, gadget, func(g *unstructured.Unstructured) {
		f.check(unstructured.SetNestedField(g.Object, int64(6), "spec", "size"))
	})
	eventually(f, "events about a server that is down", map[string]int{"Gadget GetReplicasFailed": 1}, f.failures)
	f.wrote("a server that is down", map[string]int{})
	down.Store(false)
	eventually(f, "the server is back", map[string]int64{"replicas": 6, "a": 3, "b": 3}, f.sizes)
	if failures := f.failures(); !cmp.Equal(failures, map[string]int{"Gadget GetReplicasFailed": 1}) {
		t.Errorf("was told more than once: %v", failures)
	}
}

// A workload with several kinds of pods is placed as a whole in one cluster, and each kind
// counts.
func TestTaughtComponents(t *testing.T) {
	f := newFleet(t, "a", "b")
	gadget := gadgets(f)
	policy := f.policy("gadgets")
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ReplicaScheduling = nil // static weights do not support spread constraints
		p.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	})
	eventually(f, "clusters", 1, func() int {
		if b := f.binding("Gadget", "g"); b != nil {
			return len(b.Spec.Clusters)
		}
		return 0
	})
	stays := strings.TrimPrefix(f.binding("Gadget", "g").Spec.Clusters[0].Name, f.ns+"-")
	f.arriveAs(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, "g", stays)
	eventually(f, "clusters with a work", 1, func() int { return len(f.works("Gadget", "g")) })
	teacher := &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target: configv1alpha1.CustomizationTarget{APIVersion: "example.com/v1", Kind: "Gadget"},
			Customizations: configv1alpha1.CustomizationRules{ComponentResource: &configv1alpha1.CustomizationScript{LuaScript: `
				function GetComponents(obj)
				  return {
				    {name = "manager", replicas = 1, replicaRequirements = {resourceRequest = {cpu = "1"}}},
				    {name = "worker", replicas = obj.spec.size},
				  }
				end`}},
		},
	}
	f.create(teacher)
	t.Cleanup(func() { f.check(client.IgnoreNotFound(f.env.Hub.Delete(f.Context(), teacher))) })
	whole := []workv1alpha2.TargetComponent{{Name: "manager", Replicas: 1}, {Name: "worker", Replicas: 4}}
	eventually(f, "components of the one cluster", whole, func() []workv1alpha2.TargetComponent {
		b := f.binding("Gadget", "g")
		if b == nil || len(b.Spec.Clusters) != 1 {
			return nil
		}
		return b.Spec.Clusters[0].Components
	})
	eventually(f, "clusters with a work", 1, func() int { return len(f.works("Gadget", "g")) })
	edit(f, gadget, func(g *unstructured.Unstructured) {
		f.check(unstructured.SetNestedField(g.Object, int64(7), "spec", "size"))
	})
	whole[1].Replicas = 7
	eventually(f, "components after an edit", whole, func() []workv1alpha2.TargetComponent { return f.binding("Gadget", "g").Spec.Clusters[0].Components })
	eventually(f, "what the cluster holds", []int64{7}, func() []int64 {
		var out []int64
		for cluster, size := range f.sizes() {
			if cluster != "replicas" {
				out = append(out, size)
			}
		}
		return out
	})
}
