package binding_test

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestAnOverrideThatHoldsASecret: its fault is reported in events, bindings and Works without its path, and what it
// changed is annotated, so that other loops do not show it either.
func TestAnOverrideThatHoldsASecret(t *testing.T) {
	const canary = "canarytok3n"
	f := newFleet(t, "a")
	o := f.imageTag("tag", "web", "2", "a")
	o.Annotations = map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields}
	o.Spec.OverrideRules[0].Overriders = policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
		Path: "/spec/nix/" + canary, Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte("1")},
	}}}
	f.create(o, f.policy("all", deployments("")), f.deployment("web"))
	texts := func() string {
		var all workv1alpha2.ResourceBindingList
		f.check(f.env.Hub.List(f.Context(), &all, client.InNamespace(f.ns)))
		out := strings.Join(f.events.all(), "\n")
		for i := range all.Items {
			out += "\n" + all.Items[i].Annotations[propagation.ClusterFaultsAnnotation]
			status, err := json.Marshal(all.Items[i].Status)
			f.check(err)
			out += "\n" + string(status)
		}
		return out
	}
	eventually(f, "event", 1, func() int { return f.events.reasons()["Deployment ApplyOverridePolicyFailed"] })
	eventually(f, "a fault on the binding", true, func() bool {
		return strings.Contains(texts(), `"fault":"override policy `+f.ns+`/tag: overrideRules[0].plaintext[0]: nothing is there`)
	})
	if text := texts(); strings.Contains(text, canary) {
		t.Errorf("the value is told:\n%s", text)
	}

	edit(f, o, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0].Overriders.Plaintext[0].Path = "/spec/template/spec/restartPolicy"
		o.Spec.OverrideRules[0].Overriders.Plaintext[0].Operator = policyv1alpha1.OverriderOpAdd
		o.Spec.OverrideRules[0].Overriders.Plaintext[0].Value.Raw = []byte(`"` + canary + `"`)
	})
	eventually(f, "a manifest that is marked", gitopsv1alpha1.HoldsInFields, func() string {
		w, found := f.works("Deployment", "web")["a"]
		if !found {
			return "no Work"
		}
		var manifest unstructured.Unstructured
		f.check(json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &manifest.Object))
		return manifest.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation]
	})
}
