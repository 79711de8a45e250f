package controlplane_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/crds"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/bootstrap"
)

func TestEveryKindIsEstablished(t *testing.T) {
	env := shared.Env(t)
	want, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range want {
		got := &apiextensionsv1.CustomResourceDefinition{}
		if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(definition), got); err != nil {
			t.Error(err)
			continue
		}
		for _, condition := range got.Status.Conditions {
			good := apiextensionsv1.ConditionTrue
			if condition.Type == apiextensionsv1.NonStructuralSchema {
				good = apiextensionsv1.ConditionFalse
			}
			if condition.Status != good {
				t.Errorf("%s: %s is %s: %s", got.Name, condition.Type, condition.Status, condition.Message)
			}
		}
	}
}

// TestDefinitionsAreRepaired changes a definition and starts over.
func TestDefinitionsAreRepaired(t *testing.T) {
	env := shared.Env(t)
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Name: "overridepolicies.policy.karmada.io"}
	got := &apiextensionsv1.CustomResourceDefinition{}
	var want *apiextensionsv1.CustomResourceDefinitionSpec
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the server writes its status
		if err := env.Hub.Get(t.Context(), key, got); err != nil {
			return err
		}
		want = got.Spec.DeepCopy()
		got.Labels = map[string]string{"a-user": "was-here"}
		got.Spec.Names.ShortNames = []string{"wrong"}
		return env.Hub.Update(t.Context(), got)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := bootstrap.Definitions(t.Context(), env.Config, definitions); err != nil {
			t.Fatal(err)
		}
		repaired := &apiextensionsv1.CustomResourceDefinition{}
		if err := env.Hub.Get(t.Context(), key, repaired); err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(*want, repaired.Spec) || repaired.Labels["a-user"] != "was-here" {
			t.Errorf("labels %v, names %v, not %v", repaired.Labels, repaired.Spec.Names, want.Names)
		}
		if repaired.Generation != got.Generation+1 {
			t.Errorf("generation %d after %d: not written once", repaired.Generation, got.Generation)
		}
	}
}

// TestBindingsAreConverted writes and reads bindings in the old version, which
// the server has stored in the new one.
func TestBindingsAreConverted(t *testing.T) {
	env := shared.Env(t)
	const old, current = "work.karmada.io/v1alpha1", "work.karmada.io/v1alpha2"
	cases := map[string]string{
		"ResourceBinding": `
apiVersion: work.karmada.io/v1alpha1
kind: ResourceBinding
metadata: {name: old, labels: {a: b}, annotations: {c: d}}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, name: web, replicas: 3, resourcePerReplicas: {cpu: 100m}}
  clusters: [{name: eu, replicas: 2}, {name: us, replicas: 1}]
`,
		"ClusterResourceBinding": `
apiVersion: work.karmada.io/v1alpha1
kind: ClusterResourceBinding
metadata: {name: old}
spec:
  resource: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: web}
  clusters: [{name: eu}]
`,
	}
	for kind, manifest := range cases {
		t.Run(kind, func(t *testing.T) {
			obj := object(t, manifest)
			if kind == "ResourceBinding" {
				obj.SetNamespace(env.Namespace(t))
			}
			remove(t, env.Hub, obj.DeepCopy())
			if err := env.Hub.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, manifest).Object["spec"], obj.Object["spec"]); diff != "" {
				t.Errorf("spec as written (-want +got):\n%s", diff)
			}
			for _, version := range []string{current, old} {
				got := &unstructured.Unstructured{}
				got.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
				if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), got); err != nil {
					t.Fatal(err)
				}
				want := obj.Object
				if version == current {
					want = convert(t, obj)
					set(&unstructured.Unstructured{Object: want}, "Abort", "spec", "conflictResolution") // a default of the schema
				}
				if diff := cmp.Diff(want["spec"], got.Object["spec"]); diff != "" {
					t.Errorf("spec in %s (-want +got):\n%s", version, diff)
				}
				if diff := cmp.Diff(obj.GetLabels(), got.GetLabels()); diff != "" {
					t.Errorf("labels in %s (-want +got):\n%s", version, diff)
				}
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.FromAPIVersionAndKind(old, kind+"List"))
			if err := env.Hub.List(t.Context(), list, client.InNamespace(obj.GetNamespace())); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].GetAPIVersion() != old {
				t.Errorf("list in the old version: %v", list.Items)
			}
		})
	}
}

// convert turns a binding of the old version into what is stored.
func convert(t *testing.T, obj *unstructured.Unstructured) map[string]any {
	t.Helper()
	read := func(into any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	var stored any
	if obj.GetKind() == workv1alpha2.ResourceKindResourceBinding {
		var old workv1alpha1.ResourceBinding
		read(&old)
		stored = workv1alpha1.ResourceBindingToV1alpha2(&old)
	} else {
		var old workv1alpha1.ClusterResourceBinding
		read(&old)
		stored = workv1alpha1.ClusterResourceBindingToV1alpha2(&old)
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		t.Fatal(err)
	}
	return converted
}

// TestExplain reads what `kubectl explain` does.
func TestExplain(t *testing.T) {
	env := shared.Env(t)
	hub, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"apis/cluster.karmada.io/v1alpha1": {"com.github.karmada-io.karmada.pkg.apis.cluster.v1alpha1.Cluster", "com.github.karmada-io.karmada.pkg.apis.cluster.v1alpha1.ClusterSpec"},
		"apis/work.karmada.io/v1alpha1":    {"io.karmada.work.v1alpha1.Work", "io.karmada.work.v1alpha1.ResourceBinding"},
		"apis/work.karmada.io/v1alpha2":    {"io.karmada.work.v1alpha2.ResourceBinding", "io.karmada.work.v1alpha2.ClusterResourceBinding"},
		"apis/policy.karmada.io/v1alpha1":  {"io.karmada.policy.v1alpha1.PropagationPolicy"},
		"apis/apps/v1":                     {"io.k8s.api.apps.v1.Deployment"},
	} {
		var document struct {
			Components struct {
				Schemas map[string]struct {
					Description string `json:"description"`
				} `json:"schemas"`
			} `json:"components"`
		}
		// The kinds of a group come one by one.
		poll(t, fmt.Sprintf("%s explains %v", path, want), func() bool {
			paths, err := hub.OpenAPIV3().Paths()
			if err != nil || paths[path] == nil {
				return false
			}
			content, err := paths[path].Schema("application/json")
			return err == nil && json.Unmarshal(content, &document) == nil && !slices.ContainsFunc(want, func(name string) bool {
				return document.Components.Schemas[name].Description == ""
			})
		})
	}
	poll(t, "OpenAPI v2", func() bool {
		document, err := hub.OpenAPISchema()
		if err != nil {
			return false
		}
		text := document.String()
		return strings.Contains(text, "com.github.karmada-io.karmada.pkg.apis.cluster.v1alpha1.Cluster") && strings.Contains(text, "io.karmada.policy.v1alpha1.PropagationPolicy")
	})
}

func TestPoliciesAreShown(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	for _, manifest := range []string{propagationPolicy, overridePolicy, binding, work} {
		obj := object(t, manifest)
		obj.SetNamespace(namespace)
		remove(t, env.Hub, obj.DeepCopy())
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	for _, path := range []string{
		"policy.karmada.io/v1alpha1/namespaces/" + namespace + "/propagationpolicies",
		"policy.karmada.io/v1alpha1/namespaces/" + namespace + "/overridepolicies",
		"work.karmada.io/v1alpha2/namespaces/" + namespace + "/resourcebindings",
		"work.karmada.io/v1alpha1/namespaces/" + namespace + "/works",
	} {
		out.WriteString(show(t, env.Config, "/apis/"+path) + "\n")
	}
	golden(t, "policies.txt", out.String())
}
