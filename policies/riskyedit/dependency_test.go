package riskyedit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
)

func TestDependency(t *testing.T) {
	type user = riskyedit.User
	type clusters = []string
	both := clusters{"west", "east"}
	alone := user{Name: "Deployment shop/web", Clusters: both, Alone: true, Edited: true}
	with := func(u user, change func(*user)) user {
		change(&u)
		return u
	}
	theirs := with(alone, func(u *user) { u.Name, u.Edited = "Deployment shop/api", false })
	type outcome struct{ Lost, Missed, Users []string }
	all := outcome{Missed: clusters{"east", "west"}, Users: []string{"Deployment shop/web"}}
	for name, tc := range map[string]struct {
		of   riskyedit.Dependency
		want outcome
	}{
		"nothing changes":                             {riskyedit.Dependency{Users: []user{{Clusters: both, Edited: true}}}, outcome{}},
		"its user takes it along no more":             {riskyedit.Dependency{Users: []user{alone}}, all},
		"a policy of its own has it there":            {riskyedit.Dependency{Placed: both, Users: []user{alone}}, outcome{}},
		"a policy of its own has it in one":           {riskyedit.Dependency{Placed: clusters{"west"}, Users: []user{alone}}, outcome{nil, clusters{"east"}, []string{"Deployment shop/web"}}},
		"another user keeps it in one":                {riskyedit.Dependency{Users: []user{alone, {Clusters: clusters{"east"}}}}, outcome{nil, clusters{"west"}, []string{"Deployment shop/web"}}},
		"another user leaves that one":                {riskyedit.Dependency{Users: []user{alone, {Clusters: clusters{"east"}, Leaves: clusters{"east"}}}}, all},
		"another user does not need it any more":      {riskyedit.Dependency{Users: []user{alone, {Clusters: both, Done: true}}}, all},
		"another user takes it along no more, either": {riskyedit.Dependency{Users: []user{alone, theirs}}, all},
		"two users of the policy do not":              {riskyedit.Dependency{Users: []user{alone, with(alone, func(u *user) { u.Name = "Deployment shop/api" })}}, outcome{nil, clusters{"east", "west"}, []string{"Deployment shop/api", "Deployment shop/web"}}},
		"its user does not, by another policy's edit": {riskyedit.Dependency{Users: []user{theirs}}, outcome{}},
		"its user does not need it any more":          {riskyedit.Dependency{Users: []user{with(alone, func(u *user) { u.Done = true })}}, outcome{}},
		"its user leaves a cluster as well":           {riskyedit.Dependency{Users: []user{with(alone, func(u *user) { u.Leaves = clusters{"west"} })}}, outcome{clusters{"west"}, clusters{"east"}, []string{"Deployment shop/web"}}},
		"its user leaves a cluster with it":           {riskyedit.Dependency{Users: []user{with(alone, func(u *user) { u.Leaves, u.Alone = clusters{"west"}, false })}}, outcome{Lost: clusters{"west"}}},
		"its own policy takes it out":                 {riskyedit.Dependency{Unplaced: clusters{"west"}, Users: []user{{Clusters: clusters{"east"}}}}, outcome{Lost: clusters{"west"}}},
		"its own policy does where a user keeps it":   {riskyedit.Dependency{Unplaced: clusters{"west"}, Users: []user{{Clusters: both}}}, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome{Lost: tc.of.Lost()}
			got.Missed, got.Users = tc.of.Missed()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaches(t *testing.T) {
	fleet := []*clusterv1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "west"}}, {ObjectMeta: metav1.ObjectMeta{Name: "east"}}}
	east := policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east", "north"}}
	for name, tc := range map[string]struct {
		placement policyv1alpha1.Placement
		want      []string
	}{
		"a policy for all clusters":      {policyv1alpha1.Placement{}, []string{"west", "east"}},
		"one that names some":            {policyv1alpha1.Placement{ClusterAffinity: &east}, []string{"east"}},
		"the second term is for later":   {policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{ClusterAffinity: east}, {}}}, []string{"east"}},
		"some of them, nobody knows yet": {policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{MaxGroups: 1}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, riskyedit.Reaches(&policyv1alpha1.PropagationSpec{Placement: tc.placement}, fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
