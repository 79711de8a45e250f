package rollup_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

func TestPlaces(t *testing.T) {
	silence := &rollup.Silence{Cause: "unreachable"}
	parts := []rollup.Part{
		{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{
			{Name: "eu", State: rollup.Progressing, Reason: "not ready 2/5"}, {Name: "us", State: rollup.Healthy},
			{Name: "asia", State: rollup.Unknown, Reason: "2/5", Silence: silence}, {Name: "africa", State: rollup.Healthy},
		}},
		{Object: "Service shop/web", Clusters: []rollup.ClusterPart{
			{Name: "eu", State: rollup.Failed, Reason: "port taken"}, {Name: "us", State: rollup.Healthy}, {Name: "asia", State: rollup.Healthy},
		}},
		{Object: "Secret shop/old", Leaving: []rollup.ClusterPart{{Name: "africa", State: rollup.Progressing, Reason: "not removed yet"}}},
		{Object: "PersistentVolumeClaim shop/data", Clusters: []rollup.ClusterPart{{Name: "us"}}, Kept: []string{"eu", "north"}},
		{Object: "PersistentVolumeClaim shop/logs", Kept: []string{"north", "us"}},
		{Object: "ConfigMap shop/lost", State: rollup.Failed, Reason: "no policy"},
	}
	want := []rollup.Place{
		{Cluster: "eu", State: rollup.Failed, Reason: "Service shop/web: port taken"},
		{Cluster: "asia", State: rollup.Unknown, Reason: silence.String()},
		{Cluster: "africa", State: rollup.Progressing, Reason: "Secret shop/old: not removed yet"},
		{Cluster: "north", Reason: "claim shop/data stays, with its data (and 1 more)"},
		{Cluster: "us", Reason: "claim shop/logs stays, with its data"},
	}
	for range 5 {
		rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		if diff := cmp.Diff(want, rollup.Places(parts)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}
