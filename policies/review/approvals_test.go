package review_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/codeowners"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/review"
)

func TestNeeded(t *testing.T) {
	labels := map[string]map[string]string{"eu-1": {"stage": "prod"}, "us-1": {"stage": "test"}}
	named := func(names ...string) *gitopsv1alpha1.ApprovedClusters {
		return &gitopsv1alpha1.ApprovedClusters{Names: names}
	}
	stage := func(of string) *gitopsv1alpha1.ApprovedClusters {
		return &gitopsv1alpha1.ApprovedClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": of}}}
	}
	object := func(kind, namespace, name string) comparison.Comparison {
		return comparison.Comparison{Changes: []comparison.Change{{Object: comparison.Object{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name}, Clusters: []string{"eu-1"}}}}
	}
	shop := comparison.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		clusters    *gitopsv1alpha1.ApprovedClusters
		namespaces  []string
		of          comparison.Comparison
		edits, want bool
	}{
		"what changes anything":                         {of: change(), want: true},
		"what changes nothing":                          {},
		"what edits reviews":                            {edits: true, want: true},
		"a cluster by its name":                         {clusters: named("us-1"), of: change(), want: true},
		"another cluster":                               {clusters: named("ap-1"), of: change()},
		"a cluster by its label":                        {clusters: stage("test"), of: change(), want: true},
		"a label that none of them has":                 {clusters: stage("dev"), of: change()},
		"a namespace":                                   {namespaces: []string{"shop"}, of: change(), want: true},
		"another namespace":                             {namespaces: []string{"bank"}, of: change()},
		"a namespace in another cluster":                {clusters: named("us-1"), namespaces: []string{"shop"}, of: object("ConfigMap", "shop", "x")},
		"what has no namespace":                         {namespaces: []string{"bank"}, of: object("PersistentVolume", "", "x"), want: true},
		"the namespace itself":                          {namespaces: []string{"bank"}, of: object("Namespace", "", "bank"), want: true},
		"another namespace itself":                      {namespaces: []string{"bank"}, of: object("Namespace", "", "shop")},
		"replicas that move there":                      {clusters: stage("prod"), of: comparison.Comparison{Placements: []comparison.Placement{{Object: shop, Shifts: []comparison.Shift{{Cluster: "eu-1"}}}}}, want: true},
		"what nobody decides about any more there":      {clusters: stage("prod"), of: comparison.Comparison{Held: []comparison.Held{{Object: shop, Clusters: []string{"eu-1"}}}}, want: true},
		"what could not be followed may reach there":    {clusters: named("ap-1"), of: comparison.Comparison{Risks: []comparison.Risk{{Reason: comparison.RiskNotFollowed}}}, want: true},
		"what is refused for now may reach there later": {clusters: named("ap-1"), of: comparison.Comparison{Risks: []comparison.Risk{{Reason: comparison.RiskDependency}}}, want: true},
		"another risk changes nothing there by itself":  {clusters: named("ap-1"), of: comparison.Comparison{Risks: []comparison.Risk{{Reason: comparison.RiskIdlePolicy}}}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := review.Approvals([]gitopsv1alpha1.ReviewApproval{{Name: "it", Clusters: tc.clusters, Namespaces: tc.namespaces, By: gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}}})
			if err != nil {
				t.Fatal(err)
			}
			var want []gitopsv1alpha1.NeededApproval
			if tc.want {
				want = []gitopsv1alpha1.NeededApproval{{Name: "it", Users: []string{"ann"}, Count: 1}}
			}
			if diff := cmp.Diff(want, review.Needed(all, tc.of, labels, review.Edits{All: tc.edits})); diff != "" {
				t.Errorf("needed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNeededOfOwners(t *testing.T) {
	all, err := review.Approvals([]gitopsv1alpha1.ReviewApproval{{Name: "it", By: gitopsv1alpha1.ReviewApprovers{CodeOwners: true, Teams: []string{"org/sre"}}, Count: 2}})
	if err != nil {
		t.Fatal(err)
	}
	got := review.Needed(all, change(), nil, review.Edits{Owners: []review.Owned{{File: "a.yaml", Users: []string{"ann"}}, {File: "b.yaml"}}})
	want := []gitopsv1alpha1.NeededApproval{{Name: "it", File: "a.yaml", Users: []string{"ann"}, Count: 2}, {Name: "it", File: "b.yaml", Teams: []string{"org/sre"}, Count: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("needed (-want +got):\n%s", diff)
	}
}

func TestOfOwners(t *testing.T) {
	file, err := codeowners.Parse(codeowners.GitHub, "* @ann\n/prod @org/sre\n/docs\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []review.Owned{{File: "a", Users: []string{"ann"}}, {File: "docs/a"}, {File: "prod/a", Teams: []string{"org/sre"}}}
	if diff := cmp.Diff(want, review.OfOwners(file, []string{"a", "b", "docs/a", "prod/a", "prod/b"}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestApprovalsThatSelectNothing(t *testing.T) {
	_, err := review.Approvals([]gitopsv1alpha1.ReviewApproval{{Name: "it", Clusters: &gitopsv1alpha1.ApprovedClusters{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}}}})
	if err == nil || !strings.HasPrefix(err.Error(), "spec.approvals[0].clusters.labelSelector of it: ") {
		t.Error(err)
	}
}

func TestGive(t *testing.T) {
	users := func(count int32, names ...string) gitopsv1alpha1.NeededApproval {
		return gitopsv1alpha1.NeededApproval{Name: "it", Users: names, Count: count}
	}
	sre := gitopsv1alpha1.NeededApproval{Name: "it", Teams: []string{"org/sre"}, Count: 1}
	mixed := gitopsv1alpha1.NeededApproval{Name: "it", Users: []string{"ann", "bob", "cid"}, Teams: []string{"org/sre"}, Count: 2}
	file := gitopsv1alpha1.NeededApproval{Name: "it", File: "a.yaml", Users: []string{"ann"}, Count: 1}
	for name, tc := range map[string]struct {
		needed []gitopsv1alpha1.NeededApproval
		by     []review.Approver
		gave   [][]string
		awaits string
	}{
		"nobody yet":                   {[]gitopsv1alpha1.NeededApproval{users(1, "ann", "bob")}, nil, [][]string{nil}, "awaits it: ann or bob; what it does"},
		"one of them, in another case": {[]gitopsv1alpha1.NeededApproval{users(1, "ann", "bob")}, []review.Approver{{Login: "Bob"}}, [][]string{{"Bob"}}, ""},
		"somebody else":                {[]gitopsv1alpha1.NeededApproval{users(1, "ann")}, []review.Approver{{Login: "eve"}}, [][]string{nil}, "awaits it: ann; what it does"},
		"the author":                   {[]gitopsv1alpha1.NeededApproval{users(1, "ann", "Author")}, []review.Approver{{Login: "author"}}, [][]string{nil}, "awaits it: ann or Author; what it does"},
		"somebody of the team":         {[]gitopsv1alpha1.NeededApproval{sre}, []review.Approver{{Login: "sam", Teams: []string{"org/sre"}}}, [][]string{{"sam"}}, ""},
		"somebody of another team":     {[]gitopsv1alpha1.NeededApproval{sre}, []review.Approver{{Login: "sam", Teams: []string{"org/dev"}}}, [][]string{nil}, "awaits it: team org/sre; what it does"},
		"one of two":                   {[]gitopsv1alpha1.NeededApproval{mixed}, []review.Approver{{Login: "bob"}}, [][]string{{"bob"}}, "awaits it: ann, cid or team org/sre; what it does"},
		"none of two, of many":         {[]gitopsv1alpha1.NeededApproval{mixed}, nil, [][]string{nil}, "awaits it: 2 of ann, bob, cid or others; what it does"},
		"two of two, sorted":           {[]gitopsv1alpha1.NeededApproval{mixed}, []review.Approver{{Login: "sam", Teams: []string{"org/sre"}}, {Login: "ann"}}, [][]string{{"ann", "sam"}}, ""},
		"one approval of two":          {[]gitopsv1alpha1.NeededApproval{users(1, "ann"), users(1, "bob"), sre}, []review.Approver{{Login: "ann"}}, [][]string{{"ann"}, nil, nil}, "awaits it: bob, and 1 more; what it does"},
		"a file, and an owner":         {[]gitopsv1alpha1.NeededApproval{file}, nil, [][]string{nil}, "awaits it: ann for a.yaml; what it does"},
		"one that nobody can give":     {[]gitopsv1alpha1.NeededApproval{users(1)}, []review.Approver{{Login: "ann"}}, [][]string{nil}, "awaits it: nobody can give it; what it does"},
	} {
		t.Run(name, func(t *testing.T) {
			given := review.Give(tc.needed, "author", tc.by)
			var gave [][]string
			for _, one := range given {
				gave = append(gave, one.By)
			}
			if diff := cmp.Diff(tc.gave, gave); diff != "" {
				t.Errorf("given by (-want +got):\n%s", diff)
			}
			awaits := ""
			if missing := review.Missing(given); len(missing) > 0 {
				awaits = review.Awaited(missing, "what it does")
			}
			if awaits != tc.awaits {
				t.Errorf("%q, want %q", awaits, tc.awaits)
			}
		})
	}
}
