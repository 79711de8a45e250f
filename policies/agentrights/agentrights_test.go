package agentrights_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flotilla-io/flotilla/policies/agentrights"
)

func rules(group, resource, verbs string, names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: strings.Split(resource, ","), ResourceNames: names, Verbs: strings.Split(verbs, ",")}}
}

func TestExcess(t *testing.T) {
	const clusters, works = "cluster.karmada.io", "work.karmada.io"
	cases := map[string]struct {
		namespace string
		asked     []rbacv1.PolicyRule
		want      []string
	}{
		"nothing":                       {},
		"what it has, everywhere":       {asked: agentrights.Everywhere("north")},
		"what it has of credentials":    {namespace: "karmada-cluster", asked: agentrights.Credentials("north")},
		"what it has of Works":          {namespace: "karmada-es-north", asked: agentrights.Works()},
		"what it has of Events":         {namespace: "default", asked: agentrights.Events()},
		"all Clusters, as Karmada's":    {asked: rules(clusters, "clusters", "list,watch")},
		"all Clusters, to read one":     {asked: rules(clusters, "clusters", "get"), want: []string{"get clusters.cluster.karmada.io"}},
		"another Cluster":               {asked: rules(clusters, "clusters", "get", "north", "south"), want: []string{"get clusters.cluster.karmada.io south"}},
		"the way into its cluster":      {asked: rules(clusters, "clusters/proxy", "get", "north"), want: []string{"get clusters/proxy.cluster.karmada.io north"}},
		"to tell of its nodes":          {namespace: "karmada-es-north", asked: rules("", "configmaps", "get,update", "node-profile")},
		"to read other ConfigMaps":      {namespace: "karmada-es-north", asked: rules("", "configmaps", "get,delete", "other"), want: []string{"get configmaps other", "delete configmaps other"}},
		"any verb":                      {asked: rules(clusters, "clusters", "*", "north"), want: []string{"* clusters.cluster.karmada.io north"}},
		"any resource":                  {asked: rules(clusters, "*", "get", "north"), want: []string{"get *.cluster.karmada.io north"}},
		"any group":                     {asked: rules("*", "clusters", "get", "north"), want: []string{"get clusters.* north"}},
		"one of several groups":         {asked: []rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"events"}, Verbs: []string{"create"}}}, want: []string{"create events.apps"}},
		"Works everywhere":              {asked: rules(works, "works", "get"), want: []string{"get works.work.karmada.io"}},
		"Works of another cluster":      {namespace: "karmada-es-south", asked: rules(works, "works", "get"), want: []string{"get works.work.karmada.io"}},
		"Works to make, as Karmada's":   {namespace: "karmada-es-north", asked: rules(works, "works,works/status", "update")},
		"Works to remove all at once":   {namespace: "karmada-es-north", asked: rules(works, "works", "delete,deletecollection"), want: []string{"deletecollection works.work.karmada.io"}},
		"the impersonator's token":      {namespace: "karmada-cluster", asked: rules("", "secrets", "get,patch", "north", "north-impersonator")},
		"every Secret there":            {namespace: "karmada-cluster", asked: rules("", "secrets", "get"), want: []string{"get secrets"}},
		"Secrets elsewhere":             {namespace: "karmada-system", asked: rules("", "secrets", "get", "north"), want: []string{"get secrets north"}},
		"the same twice is named once":  {asked: append(rules("", "pods", "get"), rules("", "pods", "get")...), want: []string{"get pods"}},
		"a path that it has":            {asked: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/opened"}, Verbs: []string{"post"}}}, want: []string{"post /opened"}},
		"every path":                    {asked: []rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}}, want: []string{"get *"}},
		"a name is no wildcard":         {asked: rules(clusters, "clusters", "delete", "*"), want: []string{"delete clusters.cluster.karmada.io *"}},
		"a rule that allows nothing":    {asked: []rbacv1.PolicyRule{{Verbs: []string{"*"}}}},
		"to approve":                    {asked: rules("certificates.k8s.io", "certificatesigningrequests/approval", "update"), want: []string{"update certificatesigningrequests/approval.certificates.k8s.io"}},
		"to read all requests":          {asked: rules("certificates.k8s.io", "certificatesigningrequests", "list"), want: []string{"list certificatesigningrequests.certificates.k8s.io"}},
		"to have rights given":          {asked: rules(rbacv1.GroupName, "clusterroles", "bind,escalate"), want: []string{"bind clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io"}},
		"a namespace that it has not":   {namespace: "shop", asked: rules("", "events", "create"), want: []string{"create events"}},
		"all namespaces, as Karmada's":  {asked: rules("", "namespaces", "get")},
		"all namespaces, to write them": {asked: rules("", "namespaces", "create"), want: []string{"create namespaces"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, agentrights.Excess("north", tc.namespace, tc.asked)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGivenIsNotExcess: whatever is given may be asked for, and nothing of it is withheld.
func TestGivenIsNotExcess(t *testing.T) {
	for _, namespace := range []string{"", "default", "karmada-cluster", "karmada-system", "karmada-es-north", "karmada-es-south", "shop"} {
		given := agentrights.Given("north", namespace)
		if excess, withheld := agentrights.Excess("north", namespace, given), agentrights.Withheld("north", namespace, given); len(excess)+len(withheld) > 0 {
			t.Errorf("in %q: %q is excess, %q is withheld", namespace, excess, withheld)
		}
	}
}

func TestWithheld(t *testing.T) {
	asked := append(rules("cluster.karmada.io", "clusters", "list,get", "north"), rules("cluster.karmada.io", "clusters", "list")...)
	if diff := cmp.Diff([]string{"list clusters.cluster.karmada.io"}, agentrights.Withheld("north", "", asked)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckBinding(t *testing.T) {
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "of-north"}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
	}
	cases := map[string]struct {
		role     rbacv1.RoleRef
		subjects []rbacv1.Subject
		says     string
	}{
		"the agent's":             {role: role, subjects: []rbacv1.Subject{user("north")}},
		"without the group":       {role: role, subjects: []rbacv1.Subject{{Kind: "User", Name: "north"}}},
		"nobody's":                {role: role},
		"another's":               {role: role, subjects: []rbacv1.Subject{user("north"), user("south")}, says: "User south is not the agent"},
		"a group's of that name":  {role: role, subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "north"}}, says: "Group north is not the agent"},
		"an account's":            {role: role, subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "north", Namespace: "x"}}, says: "ServiceAccount north is not the agent"},
		"to another role":         {role: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "admin"}, says: "it is to the Role admin, it must be to the Role of-north"},
		"to a role of all places": {role: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "of-north"}, says: "it is to the ClusterRole of-north"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := agentrights.CheckBinding("north", role, tc.role, tc.subjects)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
}
