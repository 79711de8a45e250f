package controlplane_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

// Who may write customizations may not yet decide what Deployments mean.
func TestInterpretTakesAVerb(t *testing.T) {
	e := shared.Env(t)
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "teacher"}
	teacher, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	allow := func(name string, rule rbacv1.PolicyRule) {
		t.Helper()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "teacher"}},
		}
		for _, obj := range []client.Object{role, binding} {
			if err := e.Hub.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			remove(t, e.Hub, obj)
		}
	}
	customization := func() *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: metav1.ObjectMeta{Name: "deployments"}}
		c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "apps/v1", Kind: "Deployment"}
		c.Spec.Customizations.Retention = &configv1alpha1.CustomizationScript{LuaScript: "function Retain(d, o) return d end"}
		return c
	}
	writes := func() error { return teacher.Create(t.Context(), customization(), client.DryRunAll) }
	const lacks = `it decides what deployments.apps mean in all clusters: that takes the verb "interpret" on them`
	allow("writes-customizations", rbacv1.PolicyRule{APIGroups: []string{configv1alpha1.GroupName}, Resources: []string{"resourceinterpretercustomizations"}, Verbs: []string{"*"}})
	poll(t, "the user may write customizations, and lacks the verb", func() bool {
		err := writes()
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), lacks)
	})
	allow("interprets-deployments", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"interpret"}})
	poll(t, "the user may interpret deployments", func() bool { return writes() == nil })
}
