package controlplane_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// TestWhatATenantSelects: who edits or administers a namespace carries, moves and
// changes by policies what he may write himself, and nothing of an administrator's.
func TestWhatATenantSelects(t *testing.T) {
	env := shared.Env(t)
	for role, carriesQuotas := range map[string]bool{"edit": false, "admin": false, "cluster-admin": true} {
		t.Run(role, func(t *testing.T) {
			namespace := env.Namespace(t)
			who := tenant(t, env, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role})
			poll(t, "the tenant gets its rights", func() bool {
				return who.Create(t.Context(), policyOf(namespace, "ConfigMap", "v1"), client.DryRunAll) == nil
			})
			for what, tc := range map[string]struct {
				obj client.Object
				may bool
			}{
				"Deployments":          {policyOf(namespace, "Deployment", "apps/v1"), true},
				"a ConfigMap":          {policyOf(namespace, "ConfigMap", "v1", "own"), true},
				"quotas":               {policyOf(namespace, "ResourceQuota", "v1"), carriesQuotas},
				"the quota":            {policyOf(namespace, "ResourceQuota", "v1", "guard"), carriesQuotas},
				"a binding":            {policyOf(namespace, "RoleBinding", "rbac.authorization.k8s.io/v1", "team"), role == "cluster-admin"},
				"Roles":                {policyOf(namespace, "Role", "rbac.authorization.k8s.io/v1"), role == "cluster-admin"},
				"a kind to come":       {policyOf(namespace, "Guard", "example.com/v1"), role == "cluster-admin"},
				"to change ConfigMaps": {overrideOf(namespace, "ConfigMap", "v1"), true},
				"to change the quota":  {overrideOf(namespace, "ResourceQuota", "v1"), carriesQuotas},
				"to change all":        {&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}, Spec: labelled()}, role == "cluster-admin"},
			} {
				err := who.Create(t.Context(), tc.obj, client.DryRunAll)
				if tc.may != (err == nil) || !tc.may && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.resourceSelectors")) {
					t.Errorf("%s: %v, may: %t", what, err, tc.may)
				}
			}
		})
	}
}

// TestPoliciesOfAnAdministratorStay: what an administrator has written for templates of
// his own, in the namespace of a tenant, is not for the tenant to change or take away.
func TestPoliciesOfAnAdministratorStay(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	who := tenant(t, env, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"})
	poll(t, "the tenant gets its rights", func() bool {
		return who.Create(t.Context(), policyOf(namespace, "ConfigMap", "v1"), client.DryRunAll) == nil
	})
	for _, obj := range []client.Object{policyOf(namespace, "ResourceQuota", "v1", "guard"), overrideOf(namespace, "ResourceQuota", "v1")} {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		remove(t, env.Hub, obj)
		if err := who.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{}}`))); err != nil {
			t.Errorf("%T, nothing else than it is: %v", obj, err)
		}
		for what, patch := range map[string]string{
			"another place":                          `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["nobody"]}},"overrideRules":[{"overriders":{"labelsOverrider":[{"operator":"add","value":{"b":"c"}}]}}]}}`,
			"another selector":                       `{"spec":{"resourceSelectors":[{"apiVersion":"v1","kind":"ConfigMap","name":"own"}]}}`,
			"an owner that will go, or is not there": `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"own","uid":"b4d1c7a2-3a30-4f0f-8c0e-9d3f6a1f0c11"}]}}`,
			"something that is waited for":           `{"metadata":{"finalizers":["example.com/never"]}}`,
			"a mark of who applies it":               `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/ssa":"Ignore"}}}`,
			"a label":                                `{"metadata":{"labels":{"team":"x"}}}`,
		} {
			err := who.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch)))
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "resourcequotas") {
				t.Errorf("%T, %s: %v", obj, what, err)
			}
		}
		if err := who.Delete(t.Context(), obj); !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "an administrator has to change or remove it") {
			t.Errorf("%T is deleted, or the advice is another's: %v", obj, err)
		}
		if err := who.DeleteAllOf(t.Context(), obj, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("%T goes with all: %v", obj, err)
		}
	}
}

// TestWhoMayWriteOneObject: a right to one object carries that one, and no other.
func TestWhoMayWriteOneObject(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{policyv1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"own"}, Verbs: []string{"patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"kept"}, Verbs: []string{"patch"}},
	}}
	if err := env.Hub.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	who := tenant(t, env, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name})
	poll(t, "carries its own", func() bool {
		return who.Create(t.Context(), policyOf(namespace, "ConfigMap", "v1", "own"), client.DryRunAll) == nil
	})
	for what, policy := range map[string]client.Object{
		"another": policyOf(namespace, "ConfigMap", "v1", "other"), "one that it may not delete": policyOf(namespace, "ConfigMap", "v1", "kept"),
		"all": policyOf(namespace, "ConfigMap", "v1"),
	} {
		if err := who.Create(t.Context(), policy, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("%s is carried: %v", what, err)
		}
	}
	kept := overrideOf(namespace, "ConfigMap", "v1")
	if err := who.Create(t.Context(), kept.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("changes all: %v", err)
	}
	kept.Spec.ResourceSelectors[0].Name = "kept"
	if err := who.Create(t.Context(), kept, client.DryRunAll); err != nil {
		t.Errorf("changes one that it may not delete: %v", err)
	}
}

// TestANamespaceGoesWithItsPolicies: nothing of them keeps the server from emptying it.
func TestANamespaceGoesWithItsPolicies(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	override := overrideOf(namespace, "ResourceQuota", "v1")
	if err := env.Hub.Create(t.Context(), override); err != nil {
		t.Fatal(err)
	}
	if err := env.Hub.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	poll(t, "the override goes", func() bool {
		return apierrors.IsNotFound(env.Hub.Get(t.Context(), client.ObjectKeyFromObject(override), override))
	})
}

func policyOf(namespace, kind, apiVersion string, name ...string) *policyv1alpha1.PropagationPolicy {
	out := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
	out.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind}}
	for _, n := range name {
		out.Spec.ResourceSelectors[0].Name, out.Spec.Preemption = n, policyv1alpha1.PreemptAlways
	}
	return out
}

func overrideOf(namespace, kind, apiVersion string) *policyv1alpha1.OverridePolicy {
	out := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "o"}, Spec: labelled()}
	out.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind}}
	return out
}

// labelled adds a label to all that it means.
func labelled() policyv1alpha1.OverrideSpec {
	return policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
		Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"a": "b"}}}},
	}}}
}
