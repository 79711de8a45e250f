package build_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/sources/build"
)

// throughKustomize returns an input with the same result that is always built by
// kustomize.
func throughKustomize(in build.Input) build.Input {
	in.Spec.Patches = append(in.Spec.Patches, kustomize.Patch{Patch: `[{"op": "remove", "path": "/none"}]`, Target: &kustomize.Selector{Name: "no-such-object"}})
	return in
}

// bothWays builds an input with and without kustomize, and checks that the
// results are equal.
func bothWays(t *testing.T, in build.Input) []*unstructured.Unstructured {
	t.Helper()
	got, err := build.New(build.Limits{}).Build(t.Context(), in)
	want, wantErr := build.New(build.Limits{}).Build(t.Context(), throughKustomize(in))
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error = %v, by kustomize %v", err, wantErr)
	}
	if diff := cmp.Diff(want, got); err == nil && diff != "" {
		t.Fatalf("objects (-by kustomize +as they are):\n%s", diff)
	}
	return got
}

func TestWhatKustomizeWouldChangeGoesThere(t *testing.T) {
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: shop}\n"
	for name, text := range map[string]string{
		"nothing special":                       deployment("a", "nginx") + "---\n" + configMap("a"),
		"a local object":                        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {config.kubernetes.io/local-config: 'true'}}\n---\n" + configMap("b"),
		"an annotation of kustomize's own":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {internal.config.kubernetes.io/path: x, a: b}}\n",
		"a list":                                "apiVersion: v1\nkind: ConfigMapList\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n",
		"an empty list":                         configMap("a") + "---\napiVersion: v1\nkind: ConfigMapList\nmetadata: {name: x}\nitems:\n",
		"an account that a binding refers to":   account + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, namespace: shop}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}\nsubjects: [{kind: ServiceAccount, name: a}]\n",
		"a service that a webhook refers to":    "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks: [{clientConfig: {service: {name: a}}}]\n",
		"one name in two namespaces":            account + "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: other}\n",
		"one name in no namespace and default":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n---\n" + configMap("a"),
		"aliases and merges":                    configMap("a") + "data: &d {x: '1'}\nother: {<<: *d, y: '2'}\nlist: [*d]\n",
		"an empty entry in a list":              configMap("a") + "list: [a, null]\n",
		"empty labels and annotations":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {}, annotations: }\n",
		"labels that are no texts":              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: 1, b: true}}\n",
		"labels that look like something else":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: '1', b: 'true', c: yes}}\n",
		"a name that is a number":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}\n",
		"a namespace that is a number":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: 1}\n",
		"numbers, dates, nothing and much text": configMap("a") + "data: {a: 1.0, b: 2020-01-01, c: ~, d: 0o17, e: 1e3, f: yes, g: {}, h: [], i: '', j: !!str 12}\ntext: |\n  a\n\n  b\n",
		"another version of the same object":    "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n",
		"variables":                             configMap("a") + "data: {x: '${v}', y: '$v', z: '$$'}\n",
		"a kustomization among the manifests":   "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: a}\nresources: [x]\n",
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, build.Input{Files: files(map[string]string{"a.yaml": text}), Spec: build.Spec{Variables: map[string]string{"v": "1"}}})
		})
	}
}

func TestWhatKustomizationsChangeGoesThere(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "resources: [a.yaml, sub]\n",
		"a header":          "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}\nresources: [a.yaml, sub]\n",
		"a name":            "resources: [a.yaml, sub]\nnamePrefix: x-\n",
		"labels":            "resources: [a.yaml, sub]\nlabels: [{pairs: {a: b}}]\n",
		"a namespace":       "resources: [a.yaml, sub]\nnamespace: x\n",
		"an order":          "resources: [a.yaml, sub]\nsortOptions: {order: fifo}\n",
		"metadata":          "resources: [a.yaml, sub]\nbuildMetadata: [originAnnotations]\n",
		"a file of its own": "resources: [a.yaml, sub]\nconfigMapGenerator: [{name: c, literals: [a=b]}]\n",
		"a component":       "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml, sub]\n",
		"twice":             "resources: [a.yaml, sub, a.yaml]\n",
	} {
		for _, place := range []string{"", "deep"} {
			t.Run(name+" "+place, func(t *testing.T) {
				bothWays(t, build.Input{Path: place, Files: files(map[string]string{
					"kustomization.yaml": text, "a.yaml": deployment("a", "nginx"),
					"sub/kustomization.yaml": "resources: [b.yaml]\n", "sub/b.yaml": configMap("b"),
					"deep/kustomization.yaml": "resources: [..]\n",
				})})
			})
		}
	}
}

// TestWhatIsPutIntoANamespaceBothWays: kustomize changes more than the namespace of some kinds.
func TestWhatIsPutIntoANamespaceBothWays(t *testing.T) {
	kinds := []string{"ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob",
		"HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Namespace", "CustomResourceDefinition",
		"PersistentVolume", "StorageClass", "APIService", "Ingress", "Widget", "PriorityClass", "Node", "ValidatingWebhookConfiguration"}
	versions := map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1", "HorizontalPodAutoscaler": "autoscaling/v2",
		"PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1", "Ingress": "networking.k8s.io/v1", "Role": "rbac.authorization.k8s.io/v1",
		"RoleBinding": "rbac.authorization.k8s.io/v1", "ClusterRole": "rbac.authorization.k8s.io/v1", "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1", "StorageClass": "storage.k8s.io/v1", "APIService": "apiregistration.k8s.io/v1", "Widget": "example.com/v1",
		"PriorityClass": "scheduling.k8s.io/v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
	}
	const refers = "subjects: [{kind: ServiceAccount, name: a, namespace: old}]\nwebhooks: [{clientConfig: {service: {name: a, namespace: old}}}]\n" +
		"spec: {service: {name: a, namespace: old}, conversion: {webhook: {clientConfig: {service: {name: a, namespace: old}}}}, claimRef: {name: a, namespace: old}, scaleTargetRef: {kind: Deployment, name: a}}\n"
	for _, kind := range kinds {
		for _, metadata := range []string{"{name: a}", "{name: a, namespace: old, labels: {b: c}}", "{name: a, namespace: ''}"} {
			version := versions[kind]
			if version == "" {
				version = "v1"
			}
			one := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: %s\n%s", version, kind, metadata, refers)
			for _, kustomization := range []string{"", "resources: [a.yaml, b.yaml]\nnamespace: own\n", "resources: [a.yaml, sub]\n"} {
				for _, target := range []string{"", "new", "123"} {
					t.Run(fmt.Sprintf("%s %s in %q, by %q", kind, metadata, target, kustomization), func(t *testing.T) {
						in := map[string]string{"a.yaml": one, "b.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: old}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n"}
						if kind == "Service" || kind == "ServiceAccount" {
							in["b.yaml"] = configMap("b")
						}
						if kustomization != "" {
							in["kustomization.yaml"] = kustomization
							in["sub/kustomization.yaml"], in["sub/c.yaml"] = "resources: [c.yaml]\nnamespace: sub\n", configMap("c")
						}
						bothWays(t, build.Input{Files: files(in), Spec: build.Spec{TargetNamespace: target}})
					})
				}
			}
		}
	}
}

func TestRealApplicationsBothWays(t *testing.T) {
	for source, path := range map[string]string{"podinfo": "kustomize", "online-boutique": "kustomize/base"} {
		t.Run(source, func(t *testing.T) {
			for _, namespace := range []string{"", "elsewhere"} {
				if got := bothWays(t, build.Input{Files: realFiles(t, source), Path: path, Spec: build.Spec{TargetNamespace: namespace}}); len(got) == 0 {
					t.Error("no objects")
				}
			}
		})
	}
}

// TestManyObjectsAreCheap checks that kustomize, whose time grows with the square
// of the number of objects, is left out where it would change nothing.
func TestManyObjectsAreCheap(t *testing.T) {
	source := map[string]string{}
	for n := range 2000 {
		source[fmt.Sprintf("%d.yaml", n)] = configMap(fmt.Sprintf("c%d", n))
	}
	in := build.Input{Files: files(source), Spec: build.Spec{TargetNamespace: "shop"}}
	allocations := func(in build.Input) float64 {
		return testing.AllocsPerRun(1, func() {
			if got, err := build.New(build.Limits{}).Build(t.Context(), in); err != nil || len(got) != 2000 {
				t.Fatalf("%d objects, %v", len(got), err)
			}
		})
	}
	if plain, whole := allocations(in), allocations(throughKustomize(in)); plain > whole/2 {
		t.Errorf("%.0f allocations, %.0f by kustomize: it was not left out", plain, whole)
	}
}

func FuzzBothWays(f *testing.F) {
	f.Add("resources: [a.yaml]\n", configMap("a"))
	f.Add("resources: [a.yaml]\n", deployment("a", "x")+"---\n"+configMap("a"))
	f.Add("resources: [a.yaml]\nkind: Kustomization\n", "apiVersion: v1\nkind: RoleBinding\nmetadata: {name: a, labels: {a: b}}\nsubjects: [{kind: ServiceAccount, name: x}]\n")
	f.Add("resources: [a.yaml]\nnamespace: x\n", deployment("a", "x")+"---\n"+configMap("a"))
	f.Fuzz(func(t *testing.T, kustomization, manifest string) {
		in := build.Input{Files: files(map[string]string{"kustomization.yaml": kustomization, "a.yaml": manifest})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		builder := build.New(build.Limits{Document: 1 << 14, Aliases: 1000})
		got, err := builder.Build(ctx, in)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("a small input takes longer than a minute")
		}
		if err != nil {
			return // kustomize decides in cases of doubt
		}
		want, err := builder.Build(ctx, throughKustomize(in))
		if err != nil {
			t.Fatalf("kustomize refuses what was built: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("objects (-by kustomize +as they are):\n%s", diff)
		}
	})
}
