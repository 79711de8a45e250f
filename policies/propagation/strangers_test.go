package propagation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

func TestStrangers(t *testing.T) {
	fleet := []string{"west", "east", "eu-central-1", "eu-central-2"}
	of := func(p policyv1alpha1.Placement) *policyv1alpha1.PropagationSpec {
		return &policyv1alpha1.PropagationSpec{Placement: p}
	}
	cases := map[string]struct {
		named []string
		want  []Stranger
	}{
		"all are in the fleet":            {[]string{"east", "west"}, nil},
		"a letter is missing":             {[]string{"wst"}, []Stranger{{"wst", "west"}}},
		"a letter is too much":            {[]string{"easst"}, []Stranger{{"easst", "east"}}},
		"two are swapped":                 {[]string{"esat"}, []Stranger{{"esat", "east"}}},
		"a letter is wrong":               {[]string{"eu-central_2"}, []Stranger{{"eu-central_2", "eu-central-2"}}},
		"two are as near":                 {[]string{"eest"}, []Stranger{{"eest", "east"}}},
		"a number is another one":         {[]string{"eu-central-3"}, []Stranger{{"eu-central-3", ""}}},
		"a number has another length":     {[]string{"eu-central-12"}, []Stranger{{"eu-central-12", ""}}},
		"a number is missing":             {[]string{"eu-central-"}, []Stranger{{"eu-central-", "eu-central-1"}}},
		"a letter before a number":        {[]string{"eu-centrl-2"}, []Stranger{{"eu-centrl-2", "eu-central-2"}}},
		"none is near":                    {[]string{"mars"}, []Stranger{{"mars", ""}}},
		"one of one letter means nothing": {[]string{"x"}, []Stranger{{"x", ""}}},
		"each once, in order":             {[]string{"wst", "mars", "wst", "east"}, []Stranger{{"mars", ""}, {"wst", "west"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: tc.named}}
			if diff := cmp.Diff(tc.want, Strangers(of(p), fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got, want := Naming([]Stranger{{Name: "w\x1b[2J\u202e\n"}}), `clusterNames names w\u001b[2J\u202e\u000a, which does not exist`; got != want {
		t.Errorf("of one that a terminal would obey: %q, want %q", got, want)
	}
	many := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: strings.Split("abcd00 abcd01 abcd02 abcd03 abcd04 wst x", " ")}}
	if got := Naming(Strangers(of(many), fleet)); !strings.HasSuffix(got, "abcd04, which does not exist; and 2 more") {
		t.Errorf("of many: %q", got)
	}
	terms := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"wst"}}}, {ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"mars"}}},
	}}
	weighed := policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{WeightPreference: &policyv1alpha1.ClusterPreferences{
		StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"esat"}}, Weight: 1}},
	}}}
	if diff := cmp.Diff([]Stranger{{"esat", "east"}}, Strangers(of(weighed), fleet)); diff != "" {
		t.Errorf("of weights (-want +got):\n%s", diff)
	}
	kept := &policyv1alpha1.PropagationSpec{Suspension: &policyv1alpha1.Suspension{}}
	kept.Suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: []string{"wst", "east"}}
	if diff := cmp.Diff([]Stranger{{"wst", "west"}}, Strangers(kept, fleet)); diff != "" {
		t.Errorf("of clusters that changes are kept from (-want +got):\n%s", diff)
	}
	want := "clusterNames names mars, which does not exist; wst, which does not exist (did you mean west?)"
	if got := Naming(Strangers(of(terms), fleet)); got != want {
		t.Errorf("of all terms: %q, want %q", got, want)
	}
}

// TestWantedClusters checks that clusters of later terms, or that are only
// weighted, do not count as wanted now.
func TestWantedClusters(t *testing.T) {
	names := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	one := names("west", "east", "west")
	terms := []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: names("west")}, {AffinityName: "second", ClusterAffinity: names("east")}, {AffinityName: "third", ClusterAffinity: names("mars")},
	}
	for name, tc := range map[string]struct {
		placement *policyv1alpha1.Placement
		term      string
		want      []string
	}{
		"there is no placement":      {nil, "", nil},
		"it has one affinity":        {&policyv1alpha1.Placement{ClusterAffinity: &one}, "", []string{"east", "west"}},
		"its second term is taken":   {&policyv1alpha1.Placement{ClusterAffinities: terms}, "second", []string{"east", "west"}},
		"none of its terms is taken": {&policyv1alpha1.Placement{ClusterAffinities: terms}, "", []string{"east", "mars", "west"}},
	} {
		if diff := cmp.Diff(tc.want, WantedClusters(tc.placement, tc.term)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestExcludedClusters checks that excluding a cluster that does not exist yet is
// a mistake only if its name is nearly that of another.
func TestExcludedClusters(t *testing.T) {
	spec := &policyv1alpha1.PropagationSpec{Placement: policyv1alpha1.Placement{
		ClusterAffinity:   &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"wets", "mars"}},
		ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{ClusterAffinity: policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"east", "wets"}}}},
	}}
	if diff := cmp.Diff([]string{"east", "mars", "wets"}, ExcludedClusters(spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{"clusterNames names wst, which does not exist (did you mean west?)", "exclude names wets, which does not exist (did you mean west?)"}
	if diff := cmp.Diff(want, Remarks(&policyv1alpha1.PropagationPolicy{}, []string{"east", "wst"}, ExcludedClusters(spec), []string{"east", "west"})); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
}
