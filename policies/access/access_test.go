package access_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/access"
)

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func reach(clusters ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}, ResourceNames: clusters}
}

func bind(role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects}
}

func user(name string) rbacv1.Subject  { return rbacv1.Subject{Kind: "User", Name: name} }
func group(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }
func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}

func TestWhoMayReachACluster(t *testing.T) {
	const masters = clusterv1alpha1.GroupMasters
	for name, test := range map[string]struct {
		rule rbacv1.PolicyRule
		who  []rbacv1.Subject
		want access.Subjects
	}{
		"nobody is bound":                {rule: reach(), want: access.Subjects{Groups: []string{masters}}},
		"a user, to all clusters":        {rule: reach(), who: []rbacv1.Subject{user("zoe"), user("al")}, want: access.Subjects{Users: []string{"al", "zoe"}, Groups: []string{masters}}},
		"a user, to this one":            {rule: reach("x", "eu"), who: []rbacv1.Subject{user("al")}, want: access.Subjects{Users: []string{"al"}, Groups: []string{masters}}},
		"a user, to all at once":         {rule: reach("*"), who: []rbacv1.Subject{user("al")}, want: access.Subjects{Users: []string{"al"}, Groups: []string{masters}}},
		"a user, to another one":         {rule: reach("x"), who: []rbacv1.Subject{user("al")}, want: access.Subjects{Groups: []string{masters}}},
		"a rule without verbs":           {rule: rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}}, who: []rbacv1.Subject{user("al")}, want: access.Subjects{Groups: []string{masters}}},
		"a rule for all there is":        {rule: rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, who: []rbacv1.Subject{user("al")}, want: access.Subjects{Users: []string{"al"}, Groups: []string{masters}}},
		"a rule for the cluster alone":   {rule: rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters", "clusters/status"}}, who: []rbacv1.Subject{user("al")}, want: access.Subjects{Groups: []string{masters}}},
		"a rule for all proxies":         {rule: rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"*/proxy"}}, who: []rbacv1.Subject{user("al")}, want: access.Subjects{Users: []string{"al"}, Groups: []string{masters}}},
		"a rule for the search":          {rule: rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"search.karmada.io"}, Resources: []string{"proxying/proxy"}}, who: []rbacv1.Subject{user("al")}, want: access.Subjects{Users: []string{"al"}, Groups: []string{masters}}},
		"a group":                        {rule: reach(), who: []rbacv1.Subject{group("dev")}, want: access.Subjects{Groups: []string{"dev", masters}, AnyUser: true}},
		"all users of the hub":           {rule: reach(), who: []rbacv1.Subject{group("system:authenticated")}, want: access.Subjects{Groups: []string{masters}, AnyUser: true}},
		"the hub's administrators":       {rule: reach(), who: []rbacv1.Subject{group("system:masters"), group(masters)}, want: access.Subjects{Groups: []string{masters}}},
		"who is called as an author":     {rule: reach(), who: []rbacv1.Subject{user("flotilla:user:al"), group("flotilla:authors")}, want: access.Subjects{Groups: []string{masters}}},
		"parts of a cluster":             {rule: reach(), who: []rbacv1.Subject{user("system:node:a"), user("system:kube-scheduler"), user("system:anonymous")}, want: access.Subjects{Groups: []string{masters}}},
		"a service account":              {rule: reach(), who: []rbacv1.Subject{account("ci", "robot"), account("", "x")}, want: access.Subjects{ServiceAccounts: []string{"ci/robot"}, Groups: []string{masters, "system:serviceaccounts", "system:serviceaccounts:ci"}}},
		"a service account, as a user":   {rule: reach(), who: []rbacv1.Subject{user("system:serviceaccount:ci:robot")}, want: access.Subjects{ServiceAccounts: []string{"ci/robot"}, Groups: []string{masters, "system:serviceaccounts", "system:serviceaccounts:ci"}}},
		"the service accounts of a team": {rule: reach(), who: []rbacv1.Subject{group("system:serviceaccounts:ci")}, want: access.Subjects{Groups: []string{masters, "system:serviceaccounts", "system:serviceaccounts:ci"}, AnyServiceAccount: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := access.Of("eu", []*rbacv1.ClusterRole{role("other"), role("r", test.rule)}, []*rbacv1.ClusterRoleBinding{bind("r", test.who...), bind("other", user("mallory")), bind("gone", user("mallory"))})
			if diff := cmp.Diff(test.want, got, cmpEmpty); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var cmpEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

func TestRules(t *testing.T) {
	identity := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}}
	act := func(resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names}
	}
	for name, test := range map[string]struct {
		of   access.Subjects
		want []rbacv1.PolicyRule
	}{
		"those that are named": {
			of:   access.Subjects{Users: []string{"al"}, Groups: []string{"dev"}, ServiceAccounts: []string{"a/robot", "b/robot"}},
			want: []rbacv1.PolicyRule{act("users", "al"), act("groups", "dev"), act("serviceaccounts", "robot"), identity},
		},
		"whoever is in a group": {
			of:   access.Subjects{Users: []string{"al"}, Groups: []string{"dev"}, AnyUser: true},
			want: []rbacv1.PolicyRule{act("users"), act("groups", "dev"), identity},
		},
		"any service account": {of: access.Subjects{AnyServiceAccount: true}, want: []rbacv1.PolicyRule{act("serviceaccounts"), identity}},
		"nobody":              {want: []rbacv1.PolicyRule{identity}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.of.Rules()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorks(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "1"}}
	works, err := access.Works(cluster, access.Subjects{Groups: []string{"dev"}})
	if err != nil || len(works) != 0 {
		t.Fatalf("a cluster without an impersonator gets %d works, %v", len(works), err)
	}
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "x"}
	if works, err = access.Works(cluster, access.Subjects{Groups: []string{"dev", "ops"}}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, work := range works {
		names = append(names, work.Name)
		if !metav1.IsControlledBy(work, cluster) || work.Namespace != "karmada-es-eu" {
			t.Errorf("work %s/%s is not of the cluster", work.Namespace, work.Name)
		}
	}
	if diff := cmp.Diff(access.WorkNames(), names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for namespace, annotations := range map[string]map[string]string{"karmada-cluster": nil, "elsewhere": {"cluster.flotilla.io/accounts-namespace": "elsewhere"}} {
		cluster.Annotations = annotations
		bound, err := access.Works(cluster, access.Subjects{})
		if want := `{"kind":"ServiceAccount","name":"karmada-impersonator","namespace":"` + namespace + `"}`; err != nil || !strings.Contains(string(bound[1].Spec.Workload.Manifests[0].Raw), want) {
			t.Errorf("the account is not %s: %s, %v", want, bound[1].Spec.Workload.Manifests[0].Raw, err)
		}
	}
	groups, limited := access.Groups(works[0])
	if diff := cmp.Diff(map[string]struct{}{"dev": {}, "ops": {}}, map[string]struct{}(groups)); diff != "" || !limited {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if _, limited := access.Groups(works[1]); limited {
		t.Error("a binding says which groups there are")
	}
}
