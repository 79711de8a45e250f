package controlplane_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestNobodyHasTheNamespaceOfAClusterBeforeIt: whoever may make namespaces would have a
// role there before the cluster joins, and read all that is sent to it from then on.
func TestNobodyHasTheNamespaceOfAClusterBeforeIt(t *testing.T) {
	env := shared.Env(t)
	everything := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "space-maker"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "space-maker"}},
	}
	if err := env.Hub.Create(t.Context(), everything); err != nil {
		t.Fatal(err)
	}
	remove(t, env.Hub, everything)
	cfg := rest.CopyConfig(env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "space-maker"}
	maker, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	space := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "karmada-es-"}}
	binding := func(namespace string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, Subjects: everything.Subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		}
	}
	poll(t, "he gets his rights", func() bool { return maker.Create(t.Context(), space("not-karmada-es-north"), client.DryRunAll) == nil })
	own := env.Namespace(t)
	there := space("karmada-es-" + own)
	if err := administrator(t, env).Create(t.Context(), there); err != nil {
		t.Fatalf("an administrator: %v", err)
	}
	remove(t, env.Hub, there)
	kept := binding(there.Name)
	kept.Name = "kept"
	if err := env.Hub.Create(t.Context(), kept); err != nil {
		t.Fatalf("a loop: %v", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: there.Name, Name: "mine"}}
	for what, err := range map[string]error{
		"the namespace of a cluster to come": maker.Create(t.Context(), space("karmada-es-north")),
		"one that the server names":          maker.Create(t.Context(), made),
		"the same in a dry run":              maker.Create(t.Context(), space("karmada-es-north"), client.DryRunAll),
		"a binding in one":                   maker.Create(t.Context(), binding(there.Name)),
		"a role in one":                      maker.Create(t.Context(), role),
		"a binding that is there":            maker.Patch(t.Context(), kept.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"subjects":[]}`))),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "karmada-es-") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"a binding in another namespace": maker.Create(t.Context(), binding(own)),
		"a label of the namespace":       maker.Patch(t.Context(), there.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
		"taking a binding away":          maker.Delete(t.Context(), kept),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
