package rollup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestReplaced: what left a revision may go from the clusters in which all of the revision stands.
func TestReplaced(t *testing.T) {
	at := func(clusters ...rollup.ClusterPart) rollup.Part { return rollup.Part{Clusters: clusters} }
	healthy := func(name string) rollup.ClusterPart { return rollup.ClusterPart{Name: name, Applied: true} }
	starting := func(name string) rollup.ClusterPart {
		return rollup.ClusterPart{Name: name, State: rollup.Progressing, Reason: "not ready", Applied: true}
	}
	failing := func(name string) rollup.ClusterPart {
		return rollup.ClusterPart{Name: name, State: rollup.Failed, Reason: "denied"}
	}
	before := func(name string) rollup.ClusterPart {
		return rollup.ClusterPart{Name: name, State: rollup.Progressing, Reason: "latest version not sent yet", Outdated: true}
	}
	for name, tc := range map[string]struct {
		parts   []rollup.Part
		hub     []bool
		silent  rollup.Silences
		healthy []string // where all is healthy
		applied []string // where all is applied
	}{
		"nothing is left": {healthy: []string{"a", "b", "c"}, applied: []string{"a", "b", "c"}},
		"all is healthy everywhere": {
			parts: []rollup.Part{at(healthy("a"), healthy("b"), healthy("c"))}, hub: []bool{true},
			healthy: []string{"a", "b", "c"}, applied: []string{"a", "b", "c"},
		},
		"it starts in one cluster, and is refused in another": {
			parts:   []rollup.Part{at(healthy("a"), starting("b"), failing("c"))},
			healthy: []string{"a"}, applied: []string{"a", "b"},
		},
		"one of two is the version before": {
			parts:   []rollup.Part{at(healthy("a"), healthy("b")), at(before("b"))},
			healthy: []string{"a", "c"}, applied: []string{"a", "c"},
		},
		"nothing of it goes to one cluster": {
			parts:   []rollup.Part{at(healthy("a"), starting("b"))},
			healthy: []string{"a", "c"}, applied: []string{"a", "b", "c"},
		},
		"one has yet to be placed":            {parts: []rollup.Part{at(healthy("a")), {State: rollup.Progressing, Reason: "waits to be placed"}}},
		"one fits nowhere":                    {parts: []rollup.Part{{State: rollup.Failed, Reason: "no cluster fits"}}},
		"something on the hub is not healthy": {parts: []rollup.Part{at(healthy("a"))}, hub: []bool{true, false}},
		"nothing is heard of one cluster": {
			parts: []rollup.Part{at(healthy("a"), rollup.ClusterPart{Name: "b", State: rollup.Unknown})}, silent: rollup.Silences{"b": {}, "c": {}},
			healthy: []string{"a"}, applied: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var health, applies rollup.Replaced
			for _, p := range tc.parts {
				health.AddPart(p)
				applies.AddPart(p.AsApplied())
			}
			for _, stands := range tc.hub {
				health.Add(stands)
				applies.Add(stands)
			}
			health.Except(tc.silent)
			applies.Except(tc.silent)
			if diff := cmp.Diff(tc.healthy, applies.And(health).In([]string{"a", "b", "c"})); diff != "" {
				t.Errorf("both (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.healthy, health.In([]string{"a", "b", "c"})); diff != "" {
				t.Errorf("healthy (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.applied, applies.In([]string{"a", "b", "c"})); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		})
	}
}
