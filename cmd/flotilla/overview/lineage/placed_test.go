package lineage_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestPlaced says where a template runs, and how it came there.
func TestPlaced(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	move := eviction.Move{From: []string{"west"}, To: []string{"east"}, Why: "untolerated taint {drill:NoExecute}", At: metav1.NewTime(noon)}
	ended := move
	ended.Ended = ptr.To(metav1.NewTime(noon.Add(time.Minute)))
	for name, tc := range map[string]struct {
		clusters []workv1alpha2.TargetCluster
		leaves   string
		below    []lineage.Node
		move     *eviction.Move
		want     string
	}{
		"nowhere":              {want: "nowhere"},
		"in clusters":          {clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}, {Name: "north"}}, want: "east 2, north"},
		"while it still moves": {clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}}, leaves: "west", move: &move, want: "east 2"},
		"when it has moved":    {clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}}, move: &ended, want: "east 2; moved from west to east at 2026-01-02 12:00:00 UTC: untolerated taint {drill:NoExecute}; the old copy went at 12:01:00 UTC"},
		"when its old copy is there still": {clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}}, move: &ended,
			below: []lineage.Node{{Object: lineage.Object{Kind: "Work", Namespace: "karmada-es-east"}}, {Object: lineage.Object{Kind: "Work", Namespace: "karmada-es-west"}}},
			want:  "east 2; moved from west to east at 2026-01-02 12:00:00 UTC: untolerated taint {drill:NoExecute}; the old copy in west is to go"},
		"when somebody has let go of the old copy": {clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}}, move: &move, want: "east 2; moved from west to east at 2026-01-02 12:00:00 UTC: untolerated taint {drill:NoExecute}"},
	} {
		t.Run(name, func(t *testing.T) {
			d := placement.Decision{Clusters: tc.clusters, Record: placement.Record{Reason: "Success", LastMove: tc.move}}
			if tc.leaves != "" {
				d.Evictions = []workv1alpha2.GracefulEvictionTask{{FromCluster: tc.leaves}}
			}
			b := &workv1alpha2.ResourceBinding{}
			d.Put(b)
			if got := lineage.Placed(b, tc.below); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
