package access_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/access"
)

// line says what a right is, as its Work has it.
func line(t *testing.T, right access.Right) string {
	t.Helper()
	work, err := right.Work(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "1"}})
	if err != nil || len(work.Spec.Workload.Manifests) != 1 {
		t.Fatal(work, err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
		t.Fatal(err)
	}
	out := strings.TrimSpace(fmt.Sprintf("%s %s", obj.GetKind(), strings.Trim(obj.GetNamespace()+"/"+obj.GetName(), "/")))
	if ref, found, _ := unstructured.NestedString(obj.Object, "roleRef", "name"); found {
		kind, _, _ := unstructured.NestedString(obj.Object, "roleRef", "kind")
		out += " to " + kind + " " + ref + ":"
		subjects, _, _ := unstructured.NestedSlice(obj.Object, "subjects")
		for _, s := range subjects {
			subject, _ := s.(map[string]any)
			out += fmt.Sprintf(" %s %s", subject["kind"], subject["name"])
		}
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
		roles    []*rbacv1.Role
		bindings []*rbacv1.RoleBinding
		want     []string
	}{
		"a tenant and its account": {
			nil, []*rbacv1.RoleBinding{in("shop", "team", "ClusterRole", "edit", user("al"), account("shop", "default"), group("dev"))},
			[]string{"RoleBinding shop/flotilla:team:29f624cb to ClusterRole flotilla:edit: User flotilla:user:al User flotilla:serviceaccount:shop:default Group flotilla:group:dev"},
		},
		"a role of the namespace": {
			[]*rbacv1.Role{local("shop", "deployer"), local("shop", "other"), local("crown", "deployer")}, []*rbacv1.RoleBinding{in("shop", "team", "Role", "deployer", user("al"))},
			[]string{"Role shop/flotilla:deployer", "RoleBinding shop/flotilla:team:af4de24d to Role flotilla:deployer: User flotilla:user:al"},
		},
		"those of other namespaces, and one that goes": {
			nil, []*rbacv1.RoleBinding{in("crown", "team", "ClusterRole", "edit", user("al")), leaving}, nil,
		},
		"who means somebody else in a member, or is the control plane's own": {
			nil, []*rbacv1.RoleBinding{in("shop", "x", "ClusterRole", "edit", user("system:kube-scheduler"), user("system:karmada:agent:east"), group("system:masters"), group("system:nodes"),
				group("flotilla:masters"), account("karmada-system", "flotilla-controllers"), user("system:apiserver"), account("", "x"))}, nil,
		},
		"accounts beside the control plane's own": {
			nil, []*rbacv1.RoleBinding{in("shop", "x", "ClusterRole", "edit", account("kube-system", "x"), account("karmada-system", "x"))},
			[]string{"RoleBinding shop/flotilla:x:29f624cb to ClusterRole flotilla:edit: User flotilla:serviceaccount:kube-system:x User flotilla:serviceaccount:karmada-system:x"},
		},
		"everybody, and the accounts of a namespace": {
			nil, []*rbacv1.RoleBinding{in("shop", "x", "ClusterRole", "edit", group("system:authenticated"), group("system:serviceaccounts:ci"), group("system:serviceaccounts"))},
			[]string{"RoleBinding shop/flotilla:x:29f624cb to ClusterRole flotilla:edit: Group flotilla:authors Group flotilla:serviceaccounts:ci Group flotilla:serviceaccounts"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, right := range access.InNamespace("shop", test.roles, test.bindings) {
				got = append(got, line(t, right))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRightsEverywhere: those of the whole cluster.
func TestRightsEverywhere(t *testing.T) {
	for name, want := range map[string]string{
		"platform": "ClusterRoleBinding flotilla:platform:42f906d6 to ClusterRole flotilla:platform: Group flotilla:group:ops", "system:basic-user": "", "agent": "",
	} {
		binding := map[string]*rbacv1.ClusterRoleBinding{
			"platform": everywhere("platform", "platform", group("ops")), "system:basic-user": everywhere("system:basic-user", "system:basic-user", group("system:authenticated")),
			"agent": everywhere("agent", "view", user("system:karmada:agent:east")),
		}[name]
		right, gives := access.ByClusterBinding(binding)
		if gives != (want != "") || gives && line(t, right) != want {
			t.Errorf("%s gives %v", name, right)
		}
	}
	if got := line(t, access.ByClusterRole(role("edit"))); got != "ClusterRole flotilla:edit" {
		t.Error(got)
	}
	for binding, want := range map[*rbacv1.RoleBinding]bool{
		in("shop", "team", "ClusterRole", "edit", user("al")): true, in("shop", "team", "Role", "edit", user("al")): false,
		in("shop", "look", "ClusterRole", "view", user("system:kube-x")): false,
	} {
		if access.Binds(binding) != want {
			t.Errorf("%v binds somebody: %v", binding, !want)
		}
	}
}

// TestRightsWork: each says what it is a copy of.
func TestRightsWork(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "1"}}
	given, _ := access.ByClusterBinding(everywhere("platform", "edit", group("ops")))
	names := map[string]bool{}
	for source, right := range map[access.Source]access.Right{
		access.In("shop"):            access.InNamespace("shop", nil, []*rbacv1.RoleBinding{in("shop", "team", "ClusterRole", "edit", user("al"))})[0],
		access.OfClusterRole("edit"): access.ByClusterRole(role("edit")), access.OfClusterBinding("platform"): given,
	} {
		work, err := right.Work(cluster)
		if err != nil || work.Namespace != "karmada-es-eu" || !metav1.IsControlledBy(work, cluster) {
			t.Fatal(work, err)
		}
		if got, is := access.Copied(work); !is || got != source {
			t.Errorf("%s is a copy of %s", work.Name, got)
		}
		names[work.Name] = true
	}
	for _, name := range []string{"team", "Team", "te.am", "te:am", "te-am"} { // a tenant's may not be an administrator's
		work, err := access.InNamespace("shop", nil, []*rbacv1.RoleBinding{in("shop", name, "ClusterRole", "edit", user("al"))})[0].Work(cluster)
		if err != nil {
			t.Fatal(err)
		}
		names[work.Name] = true
	}
	if len(names) != 7 {
		t.Errorf("some have one Work: %v", names)
	}
	if _, is := access.Copied(&metav1.ObjectMeta{}); is {
		t.Error("any Work is a copy")
	}
	for source, want := range map[access.Source][3]string{"shop": {"shop", "", ""}, "ClusterRole/system:a": {"", "ClusterRole", "system:a"}} {
		namespace, kind, name := source.Split()
		if diff := cmp.Diff(want, [3]string{namespace, kind, name}); diff != "" {
			t.Error(diff)
		}
	}
	for value, want := range map[string]bool{"": false, "ControlPlane": false, "Author": true, "author": false} {
		cluster.Annotations = map[string]string{"cluster.flotilla.io/apply-as": value}
		if access.AppliesAsAuthor(cluster) != want {
			t.Errorf("apply-as %q: %v", value, !want)
		}
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
	rights := access.InNamespace("shop", []*rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ci"}, Rules: given}},
		[]*rbacv1.RoleBinding{in("shop", "ci", "Role", "ci", account("shop", "ci"))})
	work, err := rights[0].Work(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}})
	if err != nil {
		t.Fatal(err)
	}
	got := &rbacv1.Role{}
	if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(given[0].Verbs) != 2 {
		t.Errorf("the hub's own role became %v", given[0].Verbs)
	}
}
