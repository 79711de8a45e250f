package failover_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestUndone checks when the move of a template from west to east is taken back,
// as it does not become healthy there. It has ten minutes for that.
func TestUndone(t *testing.T) {
	type undone struct {
		Clusters []string
		Next     time.Time
	}
	of := func(taints ...corev1.Taint) fleet {
		return fleet{member("west", "", long, taints...), member("east", "", long)}
	}
	cases := map[string]struct {
		task       func(*workv1alpha2.GracefulEvictionTask)
		ago        time.Duration
		west, east workv1alpha2.ResourceHealth
		fleet      fleet
		due        failover.Due
		placed     string // east, if empty
		want       undone
	}{
		"its time is over":                      {ago: 10 * time.Minute, want: undone{Clusters: []string{"west"}}},
		"it has time":                           {ago: 4 * time.Minute, want: undone{Next: noon.Add(6 * time.Minute)}},
		"it has its own time":                   {ago: 4 * time.Minute, task: func(t *workv1alpha2.GracefulEvictionTask) { t.GracePeriodSeconds = ptr.To[int32](60) }, want: undone{Clusters: []string{"west"}}},
		"it is healthy where it is now":         {ago: time.Hour, east: workv1alpha2.ResourceHealthy},
		"nobody knows whether it is":            {ago: time.Hour, east: workv1alpha2.ResourceUnknown},
		"the old copy is not healthy":           {ago: time.Hour, west: workv1alpha2.ResourceUnhealthy},
		"the old copy is gone":                  {ago: time.Hour, west: "gone"},
		"its cluster is lost":                   {ago: time.Hour, fleet: fleet{member("west", clusterv1alpha1.ClusterNotReachableReason, long), member("east", "", long)}},
		"its cluster has just come back":        {ago: time.Hour, fleet: fleet{member("west", "", noon.Add(-20*time.Second)), member("east", "", long)}, want: undone{Next: noon.Add(40 * time.Second)}},
		"its cluster has left the fleet":        {ago: time.Hour, fleet: fleet{member("east", "", long)}},
		"the cause goes on":                     {ago: time.Hour, due: failover.Due{"west": {Why: "a drain", Drain: true}}},
		"nothing new may go there":              {ago: time.Hour, fleet: of(taint("a", corev1.TaintEffectNoSchedule, time.Hour))},
		"of an application":                     {ago: time.Hour, task: func(t *workv1alpha2.GracefulEvictionTask) { t.Reason = workv1alpha2.EvictionReasonApplicationFailure }, want: undone{Clusters: []string{"west"}}},
		"of a drain that has ended":             {ago: time.Hour, task: func(t *workv1alpha2.GracefulEvictionTask) { t.Producer = workv1alpha2.EvictionProducerDrain }, want: undone{Clusters: []string{"west"}}},
		"the scheduler moved it":                {ago: time.Hour, task: func(t *workv1alpha2.GracefulEvictionTask) { t.Producer = workv1alpha2.EvictionProducerScheduler }},
		"somebody else had it moved":            {ago: time.Hour, task: func(t *workv1alpha2.GracefulEvictionTask) { t.Reason = "Maintenance" }},
		"the old copy goes first":               {ago: time.Hour, task: func(t *workv1alpha2.GracefulEvictionTask) { t.PurgeMode = policyv1alpha1.PurgeModeDirectly }},
		"the old copy is to stay":               {ago: time.Hour, task: func(t *workv1alpha2.GracefulEvictionTask) { t.SuppressDeletion = ptr.To(true) }},
		"it is placed in the old cluster":       {ago: time.Hour, placed: "west"},
		"a clock that was set back":             {ago: -time.Hour, want: undone{Next: noon.Add(70 * time.Minute)}},
		"its cluster came back in time to come": {ago: time.Hour, fleet: fleet{member("west", "", noon.Add(time.Hour)), member("east", "", long)}, want: undone{Clusters: []string{"west"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			task := workv1alpha2.GracefulEvictionTask{
				FromCluster: "west", Reason: workv1alpha2.EvictionReasonTaintUntolerated, Producer: workv1alpha2.EvictionProducerTaintManager,
				PurgeMode: policyv1alpha1.PurgeModeGracefully, CreationTimestamp: ptr.To(metav1.NewTime(noon.Add(-tc.ago))),
			}
			if tc.task != nil {
				tc.task(&task)
			}
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{task}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
			if tc.placed != "" {
				b.Spec.Clusters[0].Name = tc.placed
			}
			health := map[string]workv1alpha2.ResourceHealth{"east": workv1alpha2.ResourceUnhealthy, "west": workv1alpha2.ResourceHealthy}
			if tc.east != "" {
				health["east"] = tc.east
			}
			if tc.west != "" {
				health["west"] = tc.west
			}
			for cluster, is := range health {
				if is != "gone" {
					b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: is})
				}
			}
			if tc.fleet == nil {
				tc.fleet = of()
			}
			clusters, next := failover.Rules{}.Undone(b, tc.fleet, tc.due, noon)
			if diff := cmp.Diff(tc.want, undone{clusters, next}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUndoing checks what is said about moves that lead nowhere.
func TestUndoing(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	for cluster, ago := range map[string]time.Duration{"north": time.Minute, "west": time.Hour} {
		b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{
			FromCluster: cluster, Reason: workv1alpha2.EvictionReasonTaintUntolerated, CreationTimestamp: ptr.To(metav1.NewTime(noon.Add(-ago))),
		})
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceHealthy})
	}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: "east", Health: workv1alpha2.ResourceUnhealthy})
	want := []string{"to north at 12:09:00 UTC, unless it is healthy where it is by then", "to west now, as it did not become healthy where it is"}
	got := failover.Rules{}.Undoing(b, fleet{member("north", "", long), member("west", "", long), member("east", "", long)}, noon)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
