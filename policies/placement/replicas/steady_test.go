package replicas_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// TestSteady: nobody who goes on has less than before, and there are as many in all.
func TestSteady(t *testing.T) {
	on := func(name string, n int32) workv1alpha2.TargetCluster {
		return workv1alpha2.TargetCluster{Name: name, Replicas: n}
	}
	type list = []workv1alpha2.TargetCluster
	cases := map[string]struct{ was, is, want list }{
		"they only gain":                    {list{on("a", 4), on("b", 2)}, list{on("b", 6)}, list{on("b", 6)}},
		"one would lose to one that is new": {list{on("a", 7), on("b", 7)}, list{on("b", 5), on("c", 5), on("d", 4)}, list{on("b", 7), on("c", 4), on("d", 3)}},
		"the one that is new gets nothing":  {list{on("a", 0), on("b", 4)}, list{on("b", 3), on("c", 1)}, list{on("b", 4)}},
		"one that goes stays gone":          {list{on("a", 3), on("b", 2)}, list{on("c", 5)}, list{on("c", 5)}},
		"one that is empty stays":           {list{on("a", 3)}, list{on("b", 3), on("c", 0)}, list{on("b", 3), on("c", 0)}},
		"there are to be fewer":             {list{on("a", 3), on("b", 3)}, list{on("b", 2)}, list{on("b", 2)}},
		"very many": {
			list{on("a", 1_000_000_000), on("b", 1_000_000_000)}, list{on("b", 700_000_000), on("c", 700_000_000), on("d", 600_000_000)},
			list{on("b", 1_000_000_000), on("c", 500_000_000), on("d", 500_000_000)},
		},
		"nothing": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, replicas.Steady(tc.was, tc.is)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
