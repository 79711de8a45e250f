package controlplane_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// tenant returns a client of a user who has a role in one namespace.
func tenant(t *testing.T, env *servertest.Env, namespace string, role rbacv1.RoleRef) client.Client {
	t.Helper()
	name := "tenant-" + namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name}, RoleRef: role,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	if err := env.Hub.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	cfg := rest.CopyConfig(env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: name}
	out, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWhoEditsANamespaceWritesNoRecords: what loops write and read back is not for
// who may edit or administer a namespace to write: bindings and Works, and the
// status of anything of ours.
func TestWhoEditsANamespaceWritesNoRecords(t *testing.T) {
	env := shared.Env(t)
	for _, role := range []string{"edit", "admin"} {
		t.Run(role, func(t *testing.T) {
			namespace := env.Namespace(t)
			who := tenant(t, env, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role})
			may := func(verb, resource string) bool {
				plural, group, _ := strings.Cut(resource, ".")
				plural, sub, _ := strings.Cut(plural, "/")
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: plural, Subresource: sub},
				}}
				if err := who.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				return review.Status.Allowed
			}
			for _, resource := range []string{
				"propagationpolicies.policy.karmada.io", "overridepolicies.policy.karmada.io", "kustomizations.kustomize.toolkit.fluxcd.io",
				"gitrepositories.source.toolkit.fluxcd.io", "ocirepositories.source.toolkit.fluxcd.io", "alerts.notification.toolkit.fluxcd.io", "providers.notification.toolkit.fluxcd.io",
				"multiclusterservices.networking.karmada.io", "serviceexports.multicluster.x-k8s.io", "federatedhpas.autoscaling.karmada.io",
			} {
				poll(t, "write "+resource, func() bool { return may("create", resource) && may("patch", resource) && may("delete", resource) })
			}
			for _, resource := range []string{
				"resourcebindings.work.karmada.io", "resourcebindings/status.work.karmada.io", "works.work.karmada.io", "works/status.work.karmada.io",
				"kustomizations/status.kustomize.toolkit.fluxcd.io", "gitrepositories/status.source.toolkit.fluxcd.io", "ocirepositories/status.source.toolkit.fluxcd.io",
				"kustomizations/finalizers.kustomize.toolkit.fluxcd.io", "propagationpolicies/status.policy.karmada.io",
				"alerts/status.notification.toolkit.fluxcd.io", "providers/status.notification.toolkit.fluxcd.io",
				"multiclusterservices/status.networking.karmada.io", "serviceexports/status.multicluster.x-k8s.io",
				"federatedhpas/status.autoscaling.karmada.io", "commitstatuses.gitops.flotilla.io", "commitstatuses/status.gitops.flotilla.io",
				"pullrequestreviews.gitops.flotilla.io", "pullrequestreviews/status.gitops.flotilla.io",
				"federatedresourcequotas/status.policy.karmada.io",
			} {
				for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
					if may(verb, resource) {
						t.Errorf("may %s %s", verb, resource)
					}
				}
			}
			forged := object(t, binding)
			forged.SetNamespace(namespace)
			if err := who.Create(t.Context(), forged); !apierrors.IsForbidden(err) {
				t.Errorf("writes a binding: %v", err)
			}
		})
	}
}

// TestWhoWritesBindingsOfANamespace: a role of an administrator's making that lets
// somebody write the bindings of a namespace lets nobody write what loops keep there.
func TestWhoWritesBindingsOfANamespace(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bindings"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"work.karmada.io"}, Resources: []string{"resourcebindings"}, Verbs: []string{"*"}},
	}}
	if err := env.Hub.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	who := tenant(t, env, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name})
	own := object(t, binding)
	own.SetNamespace(namespace)
	if err := unstructured.SetNestedField(own.Object, namespace, "spec", "resource", "namespace"); err != nil {
		t.Fatal(err)
	}
	poll(t, "writes a binding", func() bool {
		err := who.Create(t.Context(), own.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	cases := map[string]struct{ patch, says string }{
		"that another needs it":        {`{"spec":{"requiredBy":[{"namespace":"x","name":"y","clusters":[{"name":"c"}]}]}}`, "spec.requiredBy"},
		"by a label":                   {`{"metadata":{"labels":{"resourcebinding.karmada.io/depended-by-x":"y"}}}`, "depended-by-x"},
		"what it needs":                {`{"metadata":{"annotations":{"resourcebinding.karmada.io/dependencies":"[]"}}}`, "resourcebinding.karmada.io/dependencies"},
		"an administrator's claim":     {`{"metadata":{"annotations":{"clusterpropagationpolicy.karmada.io/name":"all"}}}`, "clusterpropagationpolicy.karmada.io/name"},
		"a policy's id":                {`{"metadata":{"labels":{"clusterpropagationpolicy.karmada.io/permanent-id":"1"}}}`, "permanent-id"},
		"which version it is for":      {`{"metadata":{"annotations":{"propagation.flotilla.io/template-digest":"x"}}}`, "template-digest"},
		"what was decided":             {`{"metadata":{"annotations":{"scheduling.flotilla.io/decision":"{}"}}}`, "scheduling.flotilla.io/decision"},
		"that somebody else made it":   {`{"metadata":{"labels":{"resourcebinding.karmada.io/managed-by":"x"}}}`, ""},
		"that scheduling is suspended": {`{"spec":{"suspension":{"scheduling":true}}}`, "-"},
		"a label of its own":           {`{"metadata":{"labels":{"team":"x"},"annotations":{"example.com/note":"y"}}}`, "-"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			current := own.DeepCopy()
			err := who.Patch(t.Context(), current, client.RawPatch("application/merge-patch+json", []byte(tc.patch)))
			if tc.says == "-" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("= %v, want forbidden with %q", err, tc.says)
			}
			if err := env.Hub.Patch(t.Context(), own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(tc.patch)), client.DryRunAll); err != nil {
				t.Errorf("an administrator: %v", err)
			}
		})
	}
	foreign := object(t, binding)
	foreign.SetGroupVersionKind(schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding"})
	foreign.SetNamespace(namespace)
	foreign.SetName("foreign")
	foreign.SetAnnotations(map[string]string{"resourcebinding.karmada.io/dependencies": "[]"})
	if err := unstructured.SetNestedField(foreign.Object, namespace, "spec", "resource", "namespace"); err != nil {
		t.Fatal(err)
	}
	if err := who.Create(t.Context(), foreign); !apierrors.IsForbidden(err) {
		t.Errorf("makes one that says what it needs: %v", err)
	}
}
