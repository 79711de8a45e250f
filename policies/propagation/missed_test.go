package propagation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestMissed checks that a name that is nearly that of another cluster is a
// mistake, and so is a policy of whose clusters none exists.
func TestMissed(t *testing.T) {
	named := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	one := func(names ...string) policyv1alpha1.Placement {
		a := named(names...)
		return policyv1alpha1.Placement{ClusterAffinity: &a}
	}
	terms := func(list ...policyv1alpha1.ClusterAffinity) (out policyv1alpha1.Placement) {
		for _, a := range list {
			out.ClusterAffinities = append(out.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{AffinityName: a.ClusterNames[0], ClusterAffinity: a})
		}
		return out
	}
	wst := propagation.Stranger{Name: "wst", Meant: "west"}
	cases := map[string]struct {
		placement policyv1alpha1.Placement
		want      []propagation.Stranger
	}{
		"no name at all":                              {placement: policyv1alpha1.Placement{}},
		"all are there":                               {placement: one("east", "west")},
		"one is nearly another":                       {placement: one("east", "wst"), want: []propagation.Stranger{wst}},
		"one may yet join, and others are there":      {placement: one("east", "mars")},
		"one is nearly another, and one may yet join": {placement: one("east", "mars", "wst"), want: []propagation.Stranger{{Name: "mars"}, wst}},
		"all may yet join":                            {placement: one("mars", "venus"), want: []propagation.Stranger{{Name: "mars"}, {Name: "venus"}}},
		"the first term means nobody":                 {placement: terms(named("wst"), named("east")), want: []propagation.Stranger{wst}},
		"no term means anybody":                       {placement: terms(named("mars"), named("venus")), want: []propagation.Stranger{{Name: "mars"}}},
		"a later term does":                           {placement: terms(named("mars"), named("east"))},
		"a later term is for another day":             {placement: terms(named("east"), named("mars"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, propagation.Missed(&tc.placement, []string{"east", "west"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
