package access_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/access"
)

// lines says in a line each what rights are.
func lines(rights []*unstructured.Unstructured) []string {
	out := []string{}
	for _, obj := range rights {
		line := strings.TrimSpace(fmt.Sprintf("%s %s", obj.GetKind(), strings.Trim(obj.GetNamespace()+"/"+obj.GetName(), "/")))
		if ref, found, _ := unstructured.NestedString(obj.Object, "roleRef", "name"); found {
			kind, _, _ := unstructured.NestedString(obj.Object, "roleRef", "kind")
			line += " to " + kind + " " + ref + ":"
			subjects, _, _ := unstructured.NestedSlice(obj.Object, "subjects")
			for _, s := range subjects {
				subject, _ := s.(map[string]any)
				line += fmt.Sprintf(" %s %s", subject["kind"], subject["name"])
			}
		}
		out = append(out, line)
	}
	return out
}

func in(namespace, name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, Subjects: subjects,
	}
}

func everywhere(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	out := bind(role, subjects...)
	out.Name = name
	return out
}

func TestRights(t *testing.T) {
	deploy := rbacv1.PolicyRule{Verbs: []string{"create", "patch"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}
	local := func(namespace, name string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: []rbacv1.PolicyRule{deploy}}
	}
	leaving := in("shop", "leaving", "ClusterRole", "edit", user("al"))
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	for name, test := range map[string]struct {
		hub  access.Hub
		want []string
	}{
		"a tenant and its account": {
			access.Hub{Namespace: "shop", Bindings: []*rbacv1.RoleBinding{in("shop", "team", "ClusterRole", "edit", user("al"), account("shop", "default"), group("dev"))}},
			[]string{"RoleBinding shop/flotilla:team:29f624cb to ClusterRole flotilla:edit: User flotilla:user:al User flotilla:serviceaccount:shop:default Group flotilla:group:dev"},
		},
		"a role of the namespace": {
			access.Hub{Namespace: "shop", Roles: []*rbacv1.Role{local("shop", "deployer"), local("shop", "other"), local("crown", "deployer")}, Bindings: []*rbacv1.RoleBinding{in("shop", "team", "Role", "deployer", user("al"))}},
			[]string{"Role shop/flotilla:deployer", "RoleBinding shop/flotilla:team:af4de24d to Role flotilla:deployer: User flotilla:user:al"},
		},
		"those of other namespaces, and one that goes": {
			access.Hub{Namespace: "shop", Bindings: []*rbacv1.RoleBinding{in("crown", "team", "ClusterRole", "edit", user("al")), leaving}}, []string{},
		},
		"who means somebody else in a member, or is the control plane's own": {
			access.Hub{Namespace: "shop", Bindings: []*rbacv1.RoleBinding{in("shop", "x", "ClusterRole", "edit", user("system:kube-scheduler"), user("system:karmada:agent:east"), group("system:masters"), group("system:nodes"),
				group("flotilla:masters"), account("kube-system", "x"), account("karmada-system", "x"), account("", "x"))}}, []string{},
		},
		"everybody, and the accounts of a namespace": {
			access.Hub{Namespace: "shop", Bindings: []*rbacv1.RoleBinding{in("shop", "x", "ClusterRole", "edit", group("system:authenticated"), group("system:serviceaccounts:ci"), group("system:serviceaccounts"))}},
			[]string{"RoleBinding shop/flotilla:x:29f624cb to ClusterRole flotilla:edit: Group flotilla:authors Group flotilla:serviceaccounts:ci Group flotilla:serviceaccounts"},
		},
		"the whole cluster": {
			access.Hub{
				ClusterRoles:    []*rbacv1.ClusterRole{role("edit", deploy), role("view", deploy), role("platform", deploy), role("system:basic-user", deploy)},
				Bindings:        []*rbacv1.RoleBinding{in("shop", "team", "ClusterRole", "edit", user("al")), in("shop", "look", "ClusterRole", "view", user("system:kube-x"))},
				ClusterBindings: []*rbacv1.ClusterRoleBinding{everywhere("platform", "platform", group("ops")), everywhere("system:basic-user", "system:basic-user", group("system:authenticated")), everywhere("agent", "view", user("system:karmada:agent:east"))},
			},
			[]string{"ClusterRole flotilla:edit", "ClusterRole flotilla:platform", "ClusterRoleBinding flotilla:platform:42f906d6 to ClusterRole flotilla:platform: Group flotilla:group:ops"},
		},
		"a cluster where nobody has anything": {access.Hub{ClusterRoles: []*rbacv1.ClusterRole{role("edit", deploy)}}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			rights, err := test.hub.Rights()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(rights)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsWork(t *testing.T) {
	hub := access.Hub{Namespace: "shop", Bindings: []*rbacv1.RoleBinding{in("shop", "team", "ClusterRole", "edit", user("al"))}}
	rights, err := hub.Rights()
	if err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "1"}}
	for value, want := range map[string]bool{"": false, "ControlPlane": false, "Author": true, "author": false} {
		cluster.Annotations = map[string]string{"cluster.flotilla.io/apply-as": value}
		work, err := access.RightsWork(cluster, "shop", rights)
		if err != nil || (work != nil) != want {
			t.Errorf("apply-as %q: %v, %v", value, work, err)
		}
		if work != nil && (work.Namespace != "karmada-es-eu" || !metav1.IsControlledBy(work, cluster) || work.Labels[access.RightsLabel] != "shop" || len(work.Spec.Workload.Manifests) != 1) {
			t.Errorf("work %v", work)
		}
	}
	if work, err := access.RightsWork(cluster, "shop", nil); work != nil || err != nil {
		t.Errorf("without rights: %v, %v", work, err)
	}
	if access.AppliesAsAuthor(nil) {
		t.Error("no cluster applies as the author")
	}
}

// TestWhoUpdatesMayApply: all is written in members by a patch, so who may update on the
// hub and was never given patch applies there what he may.
func TestWhoUpdatesMayApply(t *testing.T) {
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}
	}
	given := []rbacv1.PolicyRule{rule("create", "update"), rule("update", "patch"), rule("get"), rule("*")}
	want := []rbacv1.PolicyRule{rule("create", "update", "patch"), rule("update", "patch"), rule("get"), rule("*")}
	hub := access.Hub{
		Namespace: "shop", Bindings: []*rbacv1.RoleBinding{in("shop", "ci", "Role", "ci", account("shop", "ci"))},
		Roles: []*rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ci"}, Rules: given}},
	}
	rights, err := hub.Rights()
	if err != nil {
		t.Fatal(err)
	}
	got := &rbacv1.Role{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rights[0].Object, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(given[0].Verbs) != 2 {
		t.Errorf("the hub's own role became %v", given[0].Verbs)
	}
}
