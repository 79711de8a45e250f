package rollup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestReplaced checks from which of the clusters a, b and c an object that left a
// revision may be removed.
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
	silent := func(name string) rollup.ClusterPart { return rollup.ClusterPart{Name: name, State: rollup.Unknown} }
	with := func(replicas int32, c rollup.ClusterPart) rollup.ClusterPart {
		c.Replicas = replicas
		return c
	}
	for name, tc := range map[string]struct {
		parts    []rollup.Part
		hub      []bool
		replicas map[string]int32 // of the object that left the revision
		healthy  []string         // where all is healthy
		applied  []string         // where all is applied
	}{
		"nothing is left": {healthy: []string{"a", "b", "c"}, applied: []string{"a", "b", "c"}},
		"all is healthy everywhere": {
			parts: []rollup.Part{at(healthy("a"), healthy("b"), healthy("c"))}, hub: []bool{true},
			healthy: []string{"a", "b", "c"}, applied: []string{"a", "b", "c"},
		},
		"all is healthy elsewhere": {parts: []rollup.Part{at(healthy("d"))}, healthy: []string{"a", "b", "c"}, applied: []string{"a", "b", "c"}},
		"it starts in one cluster, and is refused in another": {
			parts:   []rollup.Part{at(healthy("a"), starting("b"), failing("c"))},
			healthy: []string{"a"}, applied: []string{"a", "b"},
		},
		"one of two is the version before": {
			parts:   []rollup.Part{at(healthy("a"), healthy("b"), healthy("c")), at(healthy("a"), before("b"))},
			healthy: []string{"a"}, applied: []string{"a"},
		},
		"it is refused, and is to be elsewhere":              {parts: []rollup.Part{at(failing("d"))}},
		"it is refused elsewhere, and stands here":           {parts: []rollup.Part{at(healthy("a"), failing("d"))}, healthy: []string{"a"}, applied: []string{"a"}},
		"one has yet to be placed":                           {parts: []rollup.Part{at(healthy("a")), {State: rollup.Progressing, Reason: "waits to be placed"}}},
		"one fits nowhere":                                   {parts: []rollup.Part{{State: rollup.Failed, Reason: "no cluster fits"}}},
		"something on the hub is not healthy":                {parts: []rollup.Part{at(healthy("a"))}, hub: []bool{true, false}},
		"nothing is heard of one cluster":                    {parts: []rollup.Part{at(healthy("a"), silent("b"))}, healthy: []string{"a"}, applied: []string{"a"}},
		"it has more replicas in one, and is refused there":  {parts: []rollup.Part{at(with(1, healthy("a")), with(4, failing("b")))}, replicas: map[string]int32{"a": 4, "b": 1}},
		"it has as many in one, and is refused in another":   {parts: []rollup.Part{at(with(4, healthy("a")), with(1, failing("b")))}, replicas: map[string]int32{"a": 4, "b": 1}, healthy: []string{"a"}, applied: []string{"a"}},
		"a ConfigMap is refused in another":                  {parts: []rollup.Part{at(healthy("a"), failing("b"))}, replicas: map[string]int32{"a": 4}, healthy: []string{"a"}, applied: []string{"a"}},
		"it has fewer replicas in all, and is healthy there": {parts: []rollup.Part{at(with(1, healthy("a")))}, replicas: map[string]int32{"a": 4}, healthy: []string{"a", "b", "c"}, applied: []string{"a", "b", "c"}},
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
			var left []workv1alpha2.TargetCluster
			for _, name := range []string{"a", "b", "c"} {
				left = append(left, workv1alpha2.TargetCluster{Name: name, Replicas: tc.replicas[name]})
			}
			for what, diff := range map[string]string{
				"healthy": cmp.Diff(tc.healthy, health.In(left)), "applied": cmp.Diff(tc.applied, applies.In(left)), "both": cmp.Diff(tc.healthy, applies.And(health).In(left)),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}
