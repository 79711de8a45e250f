package decider_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// TestWhatLeavesAClusterIsTold: that a failover or a drain begins is an Event, and not only its end, which may be many minutes later.
func TestWhatLeavesAClusterIsTold(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	record := func(move *eviction.Move) placement.Record {
		return placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Message: "Placed.", LastMove: move}
	}
	in := func(names ...string) (out []workv1alpha2.TargetCluster) {
		for _, name := range names {
			out = append(out, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
		}
		return out
	}
	move := &eviction.Move{From: []string{"west"}, To: []string{"east"}, Why: "untolerated taint {a:NoExecute}", At: at}
	ended := *move
	ended.Ended = &at
	begins := []decider.Event{{Type: corev1.EventTypeNormal, Reason: workv1alpha2.EventReasonScheduleBindingSucceed, Message: "Leaves west: untolerated taint {a:NoExecute}. Result: {east:2}"}}
	for name, tc := range map[string]struct {
		was      placement.Record
		decision placement.Decision
		want     []decider.Event
	}{
		"it is moved off a cluster":               {record(nil), placement.Decision{Clusters: in("east"), Evicts: []string{"west"}, Record: record(move)}, begins},
		"it is moved again":                       {record(&eviction.Move{From: []string{"north"}, At: at}), placement.Decision{Clusters: in("east"), Evicts: []string{"west"}, Record: record(move)}, begins},
		"the same move is on its way":             {record(move), placement.Decision{Clusters: in("east"), Evicts: []string{"west"}, Record: record(move)}, nil},
		"the move is over":                        {record(move), placement.Decision{Clusters: in("east"), Record: record(&ended)}, nil},
		"its policy has it elsewhere":             {record(nil), placement.Decision{Clusters: in("east"), Record: record(move)}, nil},
		"it stays, as it has no other place":      {record(nil), placement.Decision{Clusters: in("west"), Evicts: []string{"west"}, Record: record(nil)}, nil},
		"it has failed, and was taken off before": {record(nil), placement.Decision{Clusters: in("east"), Record: record(move), Evictions: []workv1alpha2.GracefulEvictionTask{{FromCluster: "west"}}}, begins},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			placement.Decision{Clusters: in("west"), Record: tc.was}.Put(b)
			if name == "it has failed, and was taken off before" {
				b.Spec.Clusters, b.Spec.GracefulEvictionTasks = nil, tc.decision.Evictions
			}
			if diff := cmp.Diff(tc.want, decider.EventsOf(b, tc.decision)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
