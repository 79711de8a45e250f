package controlplane_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	propagationPolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, labels: {propagationpolicy.karmada.io/permanent-id: forged}}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    spreadConstraints: [{maxGroups: 2}]
    replicaScheduling: {replicaSchedulingType: Divided}
`
	clusterPropagationPolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Namespace, name: web}]
`
	overridePolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules: [{overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 3}]}}]
`
	binding = `
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: p}
spec: {resource: {apiVersion: apps/v1, kind: Deployment, name: web}}
`
	work = `
apiVersion: work.karmada.io/v1alpha1
kind: Work
metadata: {name: p}
spec:
  workload:
    manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {name: c, namespace: d, uid: pruned, resourceVersion: "1", labels: {a: b}}
        data: {k: v}
`
)

// A way is how an object gets to the server.
type way struct {
	name string
	do   func(ctx context.Context, hub client.Client, obj *unstructured.Unstructured) error
}

var (
	create = way{"create", func(ctx context.Context, hub client.Client, obj *unstructured.Unstructured) error {
		return hub.Create(ctx, obj)
	}}
	apply = way{"apply", func(ctx context.Context, hub client.Client, obj *unstructured.Unstructured) error {
		return hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test"))
	}}
	creations = []way{create, apply}
	changes   = []way{apply,
		{"update", func(ctx context.Context, hub client.Client, obj *unstructured.Unstructured) error {
			return hub.Update(ctx, obj)
		}},
		{"merge patch", func(ctx context.Context, hub client.Client, obj *unstructured.Unstructured) error {
			content, err := obj.MarshalJSON()
			if err != nil {
				return err
			}
			return hub.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", content))
		}},
	}
)

func TestAdmissionCompletes(t *testing.T) {
	cases := map[string]struct {
		manifest   string
		namespaced bool
		want       map[string]any // by path
		label      string
		finalizer  string
	}{
		"a propagation policy": {
			manifest: propagationPolicy, namespaced: true, label: policyv1alpha1.PropagationPolicyPermanentIDLabel,
			finalizer: policyv1alpha1.PropagationPolicyControllerFinalizer,
			want: map[string]any{
				"spec.resourceSelectors.0.namespace":                         "NAMESPACE",
				"spec.placement.spreadConstraints.0.spreadByField":           "cluster",
				"spec.placement.spreadConstraints.0.minGroups":               int64(1),
				"spec.placement.replicaScheduling.replicaDivisionPreference": "Weighted",
				"spec.schedulerName":                                         "default-scheduler",
			},
		},
		"a cluster propagation policy": {
			manifest: clusterPropagationPolicy, label: policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
			finalizer: policyv1alpha1.ClusterPropagationPolicyControllerFinalizer,
			want:      map[string]any{"spec.resourceSelectors.0.namespace": nil},
		},
		"an override policy": {
			manifest: overridePolicy, namespaced: true,
			want: map[string]any{"spec.resourceSelectors.0.namespace": "NAMESPACE"},
		},
		"a policy with the former names of purge modes": {
			manifest:   strings.Replace(propagationPolicy, "spec:", "spec:\n  propagateDeps: true\n  failover: {application: {decisionConditions: {}, purgeMode: Graciously}, cluster: {purgeMode: Immediately}}", 1),
			namespaced: true,
			want: map[string]any{
				"spec.failover.application.purgeMode": "Gracefully", "spec.failover.application.gracePeriodSeconds": int64(600), "spec.failover.cluster.purgeMode": "Directly",
			},
		},
		"a binding with the former name of one": {
			manifest: strings.Replace(binding, "web}", "web}, gracefulEvictionTasks: [{fromCluster: a, purgeMode: Immediately, reason: A, producer: b}]", 1), namespaced: true,
			want: map[string]any{"spec.gracefulEvictionTasks.0.purgeMode": "Directly"},
		},
		"a binding": {manifest: binding, namespaced: true, label: workv1alpha2.ResourceBindingPermanentIDLabel},
		"a work": {
			manifest: work, namespaced: true, label: workv1alpha2.WorkPermanentIDLabel,
			want: map[string]any{
				"spec.workload.manifests.0.metadata.uid":                                         nil,
				"spec.workload.manifests.0.metadata.labels.a":                                    "b",
				"spec.workload.manifests.0.metadata.labels." + workv1alpha2.WorkPermanentIDLabel: "ID",
				"spec.workload.manifests.0.metadata.annotations." + workv1alpha2.ManagedLabels:   "a,work.karmada.io/permanent-id",
			},
		},
	}
	for name, tc := range cases {
		for _, how := range creations {
			t.Run(name+" on "+how.name, func(t *testing.T) {
				hub := shared.Env(t).Hub
				obj := object(t, tc.manifest)
				if tc.namespaced {
					obj.SetNamespace(shared.Env(t).Namespace(t))
				}
				remove(t, hub, obj.DeepCopy())
				if err := how.do(t.Context(), hub, obj); err != nil {
					t.Fatal(err)
				}
				id := obj.GetLabels()[tc.label]
				if tc.label != "" && len(id) != 36 {
					t.Errorf("permanent id = %q, want a UUID", id)
				}
				if tc.finalizer != "" && !slices.Contains(obj.GetFinalizers(), tc.finalizer) {
					t.Errorf("finalizers = %v, want %s", obj.GetFinalizers(), tc.finalizer)
				}
				want, got := maps.Clone(tc.want), map[string]any{}
				for path, value := range tc.want {
					switch value {
					case "NAMESPACE":
						want[path] = obj.GetNamespace()
					case "ID":
						want[path] = id
					}
					got[path] = at(obj.Object, path)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("fields (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestAFormerNameIsNoChange: who applies a policy with the former name of a purge mode again changes nothing.
func TestAFormerNameIsNoChange(t *testing.T) {
	hub := shared.Env(t).Hub
	namespace := shared.Env(t).Namespace(t)
	var versions []string
	for range 2 {
		obj := object(t, strings.NewReplacer(", labels: {propagationpolicy.karmada.io/permanent-id: forged}", "", "spec:", "spec:\n  failover: {cluster: {purgeMode: Immediately}}").Replace(propagationPolicy))
		obj.SetNamespace(namespace)
		if err := apply.do(t.Context(), hub, obj); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, obj.GetResourceVersion())
	}
	if versions[0] != versions[1] {
		t.Errorf("versions %v", versions)
	}
}

// at follows a path of keys and indices; the keys of labels and annotations are
// its last element.
func at(value any, path string) any {
	for path != "" {
		key, rest, _ := strings.Cut(path, ".")
		if strings.Contains(path, "/") && !strings.Contains(key, "/") {
			if last, isMap := value.(map[string]any); isMap {
				if found, ok := last[path]; ok {
					return found
				}
			}
		}
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			value = v[key[0]-'0']
		default:
			return nil
		}
		path = rest
	}
	return value
}

func TestAdmissionKeepsIdentity(t *testing.T) {
	for _, how := range changes {
		t.Run(how.name+" without labels and finalizers", func(t *testing.T) {
			env := shared.Env(t)
			obj := object(t, propagationPolicy)
			obj.SetNamespace(env.Namespace(t))
			remove(t, env.Hub, obj.DeepCopy())
			if err := create.do(t.Context(), env.Hub, obj); err != nil {
				t.Fatal(err)
			}
			next := object(t, strings.ReplaceAll(propagationPolicy, "maxGroups: 2", "maxGroups: 3"))
			next.SetNamespace(obj.GetNamespace())
			next.SetLabels(nil)
			if how.name == "update" {
				next.SetResourceVersion(obj.GetResourceVersion())
			}
			if how.name == "apply" {
				how = way{"apply", func(ctx context.Context, hub client.Client, obj *unstructured.Unstructured) error {
					return hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test"), client.ForceOwnership)
				}}
			}
			if err := how.do(t.Context(), env.Hub, next); err != nil {
				t.Fatal(err)
			}
			label := policyv1alpha1.PropagationPolicyPermanentIDLabel
			if got, want := next.GetLabels()[label], obj.GetLabels()[label]; got != want || want == "" {
				t.Errorf("permanent id = %q, want %q", got, want)
			}
			if diff := cmp.Diff(obj.GetFinalizers(), next.GetFinalizers()); diff != "" {
				t.Errorf("finalizers (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAdmissionRefuses(t *testing.T) {
	cases := map[string]struct {
		manifest string
		change   func(obj *unstructured.Unstructured)
		want     string
	}{
		"another permanent id of a policy": {
			manifest: propagationPolicy,
			change: func(obj *unstructured.Unstructured) {
				obj.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "x"})
			},
			want: "metadata.labels[propagationpolicy.karmada.io/permanent-id]",
		},
		"another permanent id of a work": {
			manifest: work,
			change: func(obj *unstructured.Unstructured) {
				obj.SetLabels(map[string]string{workv1alpha2.WorkPermanentIDLabel: "x"})
			},
			want: "metadata.labels[work.karmada.io/permanent-id]",
		},
		"another scheduler of a policy": {
			manifest: propagationPolicy,
			change:   func(obj *unstructured.Unstructured) { set(obj, "other", "spec", "schedulerName") },
			want:     "spec.schedulerName",
		},
		"affinities of both kinds": {
			manifest: propagationPolicy,
			change: func(obj *unstructured.Unstructured) {
				set(obj, map[string]any{"clusterNames": []any{"a"}}, "spec", "placement", "clusterAffinity")
				set(obj, []any{map[string]any{"affinityName": "a"}}, "spec", "placement", "clusterAffinities")
			},
			want: "spec.placement",
		},
		"dependencies that are no list": {
			manifest: binding,
			change: func(obj *unstructured.Unstructured) {
				obj.SetAnnotations(map[string]string{workv1alpha2.BindingDependenciesAnnotationKey: "{}"})
			},
			want: "metadata.annotations[resourcebinding.karmada.io/dependencies]",
		},
		"a path that is none": {
			manifest: overridePolicy,
			change: func(obj *unstructured.Unstructured) {
				set(obj, []any{map[string]any{"overriders": map[string]any{"fieldOverrider": []any{map[string]any{"fieldPath": "no/slash", "json": []any{}}}}}}, "spec", "overrideRules")
			},
			want: "fieldPath",
		},
	}
	for name, tc := range cases {
		for _, how := range changes {
			t.Run(name+" by "+how.name, func(t *testing.T) {
				env := shared.Env(t)
				obj := object(t, tc.manifest)
				obj.SetNamespace(env.Namespace(t))
				remove(t, env.Hub, obj.DeepCopy())
				if err := apply.do(t.Context(), env.Hub, obj); err != nil {
					t.Fatal(err)
				}
				next := object(t, tc.manifest)
				next.SetNamespace(obj.GetNamespace())
				next.SetLabels(nil)
				if how.name == "update" {
					next.SetResourceVersion(obj.GetResourceVersion())
				}
				tc.change(next)
				err := how.do(t.Context(), env.Hub, next)
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error = %v, want %s", err, tc.want)
				}
				if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), next); err != nil || next.GetResourceVersion() != obj.GetResourceVersion() {
					t.Errorf("a refused request changed the object: %v", err)
				}
			})
		}
	}
}

func TestSchemaNamesTheField(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	const work = "apiVersion: work.karmada.io/v1alpha1\nkind: Work\nmetadata: {name: w}\nspec: "
	const binding = "apiVersion: work.karmada.io/v1alpha2\nkind: ResourceBinding\nmetadata: {name: b}\nspec: "
	for manifest, want := range map[string]string{
		strings.Replace(propagationPolicy, "spec:", "spec:\n  priority: high", 1): "spec.priority: Invalid value",
		work + "{workload: {manifests: 1}}":                                       "field WorkloadTemplate.spec.workload.manifests of type",
		work + "{workload: 1}":                                                    "field WorkSpec.spec.workload of type",
		work + "{workload: {manifests: [{kind: A}]}}":                             "spec.workload.manifests[0].apiVersion: Required value",
		binding + "{resource: {apiVersion: v1, kind: ConfigMap}}":                 "spec.resource.name: Required value",
		binding + "{}": "spec.resource.apiVersion: Required value",
		binding + "{resource: {apiVersion: v1, kind: ConfigMap, name: c}, conflictResolution: Maybe}": `spec.conflictResolution: Unsupported value: "Maybe": supported values: "Abort", "Overwrite"`,
		binding + "{resource: {apiVersion: v1, kind: ConfigMap, name: c}, clusters: [{replicas: 1}]}": "spec.clusters[0].name: Required value",
	} {
		t.Run(want, func(t *testing.T) {
			obj := object(t, manifest)
			obj.SetNamespace(namespace)
			err := env.Hub.Create(t.Context(), obj)
			if !(apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want %s", err, want)
			}
		})
	}
}

func set(obj *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		panic(err)
	}
}

func TestAdmissionLetsGo(t *testing.T) {
	env := shared.Env(t)
	obj := object(t, propagationPolicy)
	obj.SetNamespace(env.Namespace(t))
	if err := env.Hub.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := env.Hub.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatalf("the finalizer did not hold the policy: %v", err)
	}
	obj.SetFinalizers(nil)
	if err := env.Hub.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
		t.Errorf("the policy stays: %v", err)
	}
}

func TestProtectedObjectsStay(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	for name, manifest := range map[string]string{
		"a built-in kind":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\n",
		"a custom resource":    overridePolicy,
		"a namespace":          "apiVersion: v1\nkind: Namespace\nmetadata: {name: protected}\n",
		"a kind of ours":       "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: protected}\nspec: {syncMode: Pull}\n",
		"a label of no effect": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: q, labels: {resourcetemplate.karmada.io/deletion-protected: Sometimes}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, manifest)
			if kind := obj.GetKind(); kind != "Namespace" && kind != "Cluster" {
				obj.SetNamespace(namespace)
			}
			protected := obj.GetLabels() == nil
			if protected {
				obj.SetLabels(map[string]string{workv1alpha2.DeletionProtectionLabelKey: workv1alpha2.DeletionProtectionAlways})
			}
			if err := env.Hub.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			err := env.Hub.Delete(t.Context(), obj.DeepCopy())
			if !protected {
				if err != nil {
					t.Errorf("error = %v", err)
				}
				return
			}
			const want = "This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected"
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want %q", err, want)
			}
			obj.SetLabels(nil)
			if err := env.Hub.Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if err := env.Hub.Delete(t.Context(), obj); err != nil {
				t.Errorf("without the label: %v", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	env := shared.Env(t)
	heard := &listener{}
	config := rest.CopyConfig(env.Config)
	config.WarningHandlerWithContext = heard
	hub, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	obj := object(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: w}
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment}
    - {apiVersion: apps/v1, kind: Deplyoment}
    - {apiVersion: example.org/v1, kind: Thing}
`)
	obj.SetNamespace(env.Namespace(t))
	if err := hub.Create(t.Context(), obj, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	const tail = ": nothing is propagated until its CustomResourceDefinition is applied here"
	want := []string{
		"spec.resourceSelectors[1]: the control plane does not serve Deplyoment of apps/v1" + tail,
		"spec.resourceSelectors[2]: the control plane does not serve Thing of example.org/v1" + tail,
	}
	if diff := cmp.Diff(want, heard.all()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	heard.heard = nil
	quota := object(t, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: "1", requests.cpu: "1", configmaps: "2", count/deployments.apps: "3"}}}`)
	quota.SetNamespace(obj.GetNamespace())
	if err := hub.Create(t.Context(), quota, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	const limits = ": limits nothing here: the control plane counts objects alone, as count/deployments.apps. " +
		"What clusters run is limited by a quota that a policy carries there, or by a FederatedResourceQuota"
	if diff := cmp.Diff([]string{"spec.hard[pods]" + limits, "spec.hard[requests.cpu]" + limits}, heard.all()); diff != "" {
		t.Errorf("warnings about a quota (-want +got):\n%s", diff)
	}
}

// A listener keeps warnings.
type listener struct {
	mu    sync.Mutex
	heard []string
}

func (l *listener) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, text)
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

var _ rest.WarningHandlerWithContext = (*listener)(nil)
