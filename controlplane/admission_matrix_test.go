package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// Ways to change an object that leads past some servers' checks.
var patches = map[string]func(obj *unstructured.Unstructured, spec, labels map[string]any) client.Patch{
	"merge patch": func(_ *unstructured.Unstructured, spec, labels map[string]any) client.Patch {
		return client.RawPatch(types.MergePatchType, mustJSON(map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}))
	},
	"JSON patch": func(obj *unstructured.Unstructured, spec, labels map[string]any) client.Patch {
		return client.RawPatch(types.JSONPatchType, mustJSON([]map[string]any{
			{"op": "replace", "path": "/metadata/labels", "value": labels}, {"op": "replace", "path": "/spec", "value": spec},
		}))
	},
	"apply": func(obj *unstructured.Unstructured, spec, labels map[string]any) client.Patch {
		return client.RawPatch(types.ApplyPatchType, mustJSON(map[string]any{
			"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace(), "labels": labels}, "spec": spec,
		}))
	},
	"update": nil,
}

func mustJSON(value any) []byte {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps of texts
	}
	return content
}

func (e *env) change(ctx context.Context, how string, obj *unstructured.Unstructured, spec, labels map[string]any, dryRun bool) error {
	next := obj.DeepCopy()
	if make := patches[how]; make != nil {
		opts := []client.PatchOption{}
		if how == "apply" {
			opts = append(opts, client.FieldOwner("flotilla"), client.ForceOwnership) // also the name of our own loops
		}
		if dryRun {
			opts = append(opts, client.DryRunAll)
		}
		return e.Hub.Patch(ctx, next, make(obj, spec, labels), opts...)
	}
	next.Object["spec"] = spec
	next.Object["metadata"].(map[string]any)["labels"] = labels
	if dryRun {
		return e.Hub.Update(ctx, next, client.DryRunAll)
	}
	return e.Hub.Update(ctx, next)
}

type env struct{ *servertest.Env }

// Nothing leads past admission: no verb, no kind of patch, no sub-resource, no dry
// run.
func TestNothingLeadsPastAdmission(t *testing.T) {
	e := &env{shared.Env(t)}
	good := map[string]any{"resourceSelectors": []any{map[string]any{"apiVersion": "v1", "kind": "Secret"}}}
	for how := range patches {
		for _, dryRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %t", how, dryRun), func(t *testing.T) {
				obj := object(t, propagationPolicy)
				obj.SetNamespace(e.Namespace(t))
				remove(t, e.Hub, obj.DeepCopy())
				if err := e.Hub.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
				id := obj.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel]
				bad := map[string]any{"resourceSelectors": []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": "elsewhere"}}}
				if err := e.change(t.Context(), how, obj, bad, map[string]any{}, dryRun); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.resourceSelectors[0].namespace") {
					t.Errorf("another namespace: %v", err)
				}
				forged := map[string]any{policyv1alpha1.PropagationPolicyPermanentIDLabel: "forged"}
				if err := e.change(t.Context(), how, obj, good, forged, dryRun); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), policyv1alpha1.PropagationPolicyPermanentIDLabel) {
					t.Errorf("another permanent id: %v", err)
				}
				if err := e.change(t.Context(), how, obj, good, map[string]any{"a": "b"}, dryRun); err != nil {
					t.Errorf("a good change: %v", err)
				}
				after := obj.DeepCopy()
				if err := e.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), after); err != nil {
					t.Fatal(err)
				}
				if got := after.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel]; got != id {
					t.Errorf("permanent id %q, was %q", got, id)
				}
				if (after.GetResourceVersion() == obj.GetResourceVersion()) != dryRun {
					t.Error("a dry run is stored, or a write is not")
				}
				if !dryRun && at(after.Object, "spec.resourceSelectors.0.namespace") != obj.GetNamespace() {
					t.Error("no defaults were set")
				}
			})
		}
	}
	t.Run("the status leaves identity and spec alone", func(t *testing.T) {
		obj := object(t, propagationPolicy)
		obj.SetNamespace(e.Namespace(t))
		remove(t, e.Hub, obj.DeepCopy())
		if err := e.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		before := obj.DeepCopy()
		content := mustJSON(map[string]any{"metadata": map[string]any{"labels": map[string]any{policyv1alpha1.PropagationPolicyPermanentIDLabel: "forged"}, "finalizers": nil}, "spec": map[string]any{"priority": 9}, "status": map[string]any{"observedGeneration": 1}})
		if err := e.Hub.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, content)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"metadata.labels", "metadata.finalizers", "spec"} {
			if diff := cmp.Diff(at(before.Object, path), at(obj.Object, path)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	})
}

// A protected object survives the deletion of its whole collection.
func TestProtectedObjectsSurviveDeleteCollection(t *testing.T) {
	e := shared.Env(t)
	for _, manifest := range []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\n", overridePolicy, binding, work} {
		obj := object(t, manifest)
		t.Run(obj.GetKind(), func(t *testing.T) {
			namespace := e.Namespace(t)
			free := obj.DeepCopy()
			free.SetName("free")
			free.SetNamespace(namespace)
			obj.SetNamespace(namespace)
			obj.SetLabels(map[string]string{workv1alpha2.DeletionProtectionLabelKey: workv1alpha2.DeletionProtectionAlways})
			for _, o := range []*unstructured.Unstructured{free, obj} {
				if err := e.Hub.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			err := e.Hub.DeleteAllOf(t.Context(), obj, client.InNamespace(namespace))
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "This resource is protected") {
				t.Errorf("error = %v", err)
			}
			if err := e.Hub.Delete(t.Context(), obj, client.DryRunAll); !apierrors.IsForbidden(err) {
				t.Errorf("a dry run is not refused: %v", err)
			}
			if err := e.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatalf("the protected object is gone: %v", err)
			}
			obj.SetLabels(nil)
			if err := e.Hub.Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if err := e.Hub.DeleteAllOf(t.Context(), obj, client.InNamespace(namespace)); err != nil {
				t.Errorf("without the label: %v", err)
			}
		})
	}
}

// A typo is told to every client that does not ask not to be told.
func TestUnknownFieldsAreReported(t *testing.T) {
	e := shared.Env(t)
	namespace := e.Namespace(t)
	for _, manifest := range []string{propagationPolicy, clusterPropagationPolicy, overridePolicy, binding} {
		obj := object(t, manifest)
		t.Run(obj.GetKind(), func(t *testing.T) {
			heard := &listener{}
			config := rest.CopyConfig(e.Config)
			config.WarningHandlerWithContext = heard
			hub, err := client.New(config, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if obj.GetKind() != "ClusterPropagationPolicy" {
				obj.SetNamespace(namespace)
			}
			set(obj, "high", "spec", "priorty")
			if err := hub.Create(t.Context(), obj.DeepCopy(), client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(heard.all(), "\n"); !strings.Contains(all, `unknown field "spec.priorty"`) {
				t.Errorf("warnings: %s", all)
			}
			err = hub.Create(t.Context(), obj.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.priorty"`) {
				t.Errorf("strict: %v", err)
			}
			err = hub.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner("test"), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), "priorty") {
				t.Errorf("apply: %v", err)
			}
		})
	}
}

// A tenant cannot take another object's permanent id; an administrator who
// restores a backup keeps those in it.
func TestPermanentIDsAreNotSpoofed(t *testing.T) {
	e := shared.Env(t)
	namespace := e.Namespace(t)
	rights := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: namespace}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
	grant := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "all"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "tenant"}},
	}
	for _, obj := range []client.Object{rights, grant} {
		if err := e.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tenant"}
	tenant, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	const service = "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {name: p}\nspec: {types: [CrossCluster]}\n"
	for label, manifest := range map[string]string{
		workv1alpha2.ResourceBindingPermanentIDLabel: binding, workv1alpha2.WorkPermanentIDLabel: work,
		"multiclusterservice.karmada.io/permanent-id": service, policyv1alpha1.PropagationPolicyPermanentIDLabel: propagationPolicy,
	} {
		t.Run(label, func(t *testing.T) {
			obj := object(t, manifest)
			obj.SetNamespace(namespace)
			if obj.GetKind() == "ResourceBinding" { // a tenant binds what is in the namespace
				if err := unstructured.SetNestedField(obj.Object, namespace, "spec", "resource", "namespace"); err != nil {
					t.Fatal(err)
				}
			}
			obj.SetLabels(map[string]string{label: "victim"})
			restored := obj.DeepCopy()
			restored.SetName("restored")
			remove(t, e.Hub, obj.DeepCopy())
			remove(t, e.Hub, restored.DeepCopy())
			poll(t, "the tenant gets its rights", func() bool {
				return !apierrors.IsForbidden(tenant.Create(t.Context(), obj.DeepCopy(), client.DryRunAll))
			})
			if err := tenant.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if got := obj.GetLabels()[label]; got == "victim" || len(got) != 36 {
				t.Errorf("permanent id %q", got)
			}
			if err := e.Hub.Create(t.Context(), restored); err != nil {
				t.Fatal(err)
			}
			if got := restored.GetLabels()[label]; (got == "victim") != (label != policyv1alpha1.PropagationPolicyPermanentIDLabel) {
				t.Errorf("restored with permanent id %q", got)
			}
		})
	}
	stranger := object(t, strings.Replace(binding, "kind: Deployment, name: web", "kind: Deployment, namespace: kube-system, name: web", 1))
	stranger.SetNamespace(namespace)
	if err := tenant.Create(t.Context(), stranger); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "in its own namespace, "+namespace) {
		t.Errorf("a binding of what is another's = %v", err)
	}
}
