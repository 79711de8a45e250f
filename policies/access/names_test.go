package access_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/access"
)

func TestOwnNames(t *testing.T) {
	named := func(name string) access.Grant { return access.Grant{Metadata: metav1.ObjectMeta{Name: name}} }
	to := func(subjects ...rbacv1.Subject) access.Grant {
		return access.Grant{Metadata: metav1.ObjectMeta{Name: "team"}, Subjects: subjects}
	}
	may := func(verb, name string) access.Grant {
		return access.Grant{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}, {Verbs: []string{"list", verb}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"al", name}}}}
	}
	for name, tc := range map[string]struct {
		grant access.Grant
		want  string
	}{
		"a name of its own":                {named("team"), ""},
		"one that only looks alike":        {named("flotilla-masters"), ""},
		"a copy's name":                    {named("flotilla:team:29f624cb"), "metadata.name flotilla:team:29f624cb"},
		"a name that the server completes": {access.Grant{Metadata: metav1.ObjectMeta{GenerateName: "flotilla:"}}, "metadata.generateName flotilla:"},
		"people of the member":             {to(user("al"), group("dev"), account("shop", "ci")), ""},
		"an author":                        {to(user("al"), user("flotilla:user:al")), "subjects[1].name flotilla:user:al"},
		"the masters":                      {to(group("flotilla:masters")), "subjects[0].name flotilla:masters"},
		"to act as somebody":               {may("impersonate", "bob"), ""},
		"to act as an author":              {may("impersonate", "flotilla:user:al"), "rules[1].resourceNames[1] flotilla:user:al"},
		"to do anything with an author":    {may("*", "flotilla:masters"), "rules[1].resourceNames[1] flotilla:masters"},
		"to look at a copy":                {may("get", "flotilla:edit"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			field, value := tc.grant.OwnName()
			if got := field + " " + value; got != tc.want && (tc.want != "" || got != " ") {
				t.Errorf("= %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGrantOf(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": "RoleBinding", "metadata": map[string]any{"name": "team"}, "subjects": []any{map[string]any{"kind": "User", "name": "flotilla:user:al"}}}}
	grant, err := access.GrantOf(obj)
	if field, _ := grant.OwnName(); err != nil || field != "subjects[0].name" {
		t.Errorf("= %+v, %v", grant, err)
	}
	obj.Object["subjects"] = "flotilla:user:al"
	if grant, err := access.GrantOf(obj); err == nil {
		t.Errorf("what cannot be read is %+v", grant)
	}
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}: true, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
		{Group: "example.com", Kind: "Role"}: false, {Group: "rbac.authorization.k8s.io", Kind: "Other"}: false,
	} {
		if access.Gives(kind) != want {
			t.Errorf("%s gives rights: %v", kind, !want)
		}
	}
}
