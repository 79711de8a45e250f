package failover_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestRate checks how many templates are moved per second, given the outcome of
// earlier moves.
func TestRate(t *testing.T) {
	for name, tc := range map[string]struct {
		set  float64
		seen failover.Outcomes
		want float64
	}{
		"nothing was moved":                              {set: 2, want: 2},
		"nothing was moved, without a rate":              {},
		"all wait":                                       {set: 2, seen: failover.Outcomes{Waiting: 60}, want: 2},
		"all are healthy":                                {set: 2, seen: failover.Outcomes{Healthy: 60}, want: 2},
		"a few are ill, for reasons of their own":        {set: 2, seen: failover.Outcomes{Ill: 4}, want: 2},
		"a third is ill":                                 {set: 2, seen: failover.Outcomes{Healthy: 20, Ill: 10}, want: 2},
		"more than a third is":                           {set: 2, seen: failover.Outcomes{Healthy: 19, Ill: 10}, want: 1},
		"those that wait count for neither":              {set: 2, seen: failover.Outcomes{Healthy: 19, Ill: 10, Waiting: 100}, want: 1},
		"half of them are":                               {set: 2, seen: failover.Outcomes{Healthy: 10, Ill: 10}, want: 1},
		"more than half are":                             {set: 2, seen: failover.Outcomes{Healthy: 9, Ill: 10}, want: 0.5},
		"three quarters are":                             {set: 2, seen: failover.Outcomes{Healthy: 5, Ill: 15}, want: 0.5},
		"more than three quarters are":                   {set: 2, seen: failover.Outcomes{Healthy: 4, Ill: 15}, want: 0.2},
		"none gets well, and it goes on":                 {set: 0.5, seen: failover.Outcomes{Ill: 60}, want: 0.05},
		"more than a third is ill, without a rate":       {seen: failover.Outcomes{Healthy: 19, Ill: 10}, want: 5},
		"none gets well, without a rate":                 {seen: failover.Outcomes{Ill: 60}, want: 1},
		"none gets well, and it is all but switched off": {set: -1, seen: failover.Outcomes{Ill: 60}, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.seen.Rate(tc.set); got != tc.want {
				t.Errorf("%v a second, want %v", got, tc.want)
			}
		})
	}
}

// placedIn returns a binding that is placed in clusters, with what they report of
// it.
func placedIn(items []workv1alpha2.AggregatedStatusItem, clusters ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Clusters, b.Status.AggregatedStatus = clusters, items
	return b
}

// TestFares checks the outcome of a move for what the cluster reports.
func TestFares(t *testing.T) {
	const late = failover.DefaultHealthTimeout + time.Second
	east, west := workv1alpha2.TargetCluster{Name: "east"}, workv1alpha2.TargetCluster{Name: "west"}
	says := func(cluster string, health workv1alpha2.ResourceHealth, applied bool) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: health, Applied: applied}
	}
	type items = []workv1alpha2.AggregatedStatusItem
	directly := placedIn(nil, west)
	directly.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
	for name, tc := range map[string]struct {
		is   workv1alpha2.Binding
		to   []string // west, if empty
		ago  time.Duration
		well bool
		by   failover.Judging
		want failover.MoveState
	}{
		"healthy":                                 {is: placedIn(items{says("west", "Healthy", true)}, west), want: failover.MoveHealthy},
		"not healthy yet":                         {is: placedIn(items{says("west", "Unhealthy", true)}, west), ago: failover.DefaultHealthTimeout, want: failover.MoveWaiting},
		"not healthy after its time":              {is: placedIn(items{says("west", "Unhealthy", true)}, west), ago: late, want: failover.MoveIll},
		"not there after its time":                {is: placedIn(nil, west), ago: late, want: failover.MoveIll},
		"healthy after its time":                  {is: placedIn(items{says("west", "Healthy", true)}, west), ago: late, want: failover.MoveHealthy},
		"healthy once, and not any more":          {is: placedIn(items{says("west", "Unhealthy", true)}, west), well: true, want: failover.MoveIll},
		"there, and nobody knows its health":      {is: placedIn(items{says("west", "Unknown", true)}, west), ago: late, want: failover.MoveWaiting},
		"healthy in one of two":                   {is: placedIn(items{says("east", "Healthy", true), says("west", "Unhealthy", true)}, east, west), to: []string{"east", "west"}, ago: late, want: failover.MoveIll},
		"healthy in the one of two where it is":   {is: placedIn(items{says("east", "Healthy", true), says("west", "Unhealthy", true)}, east), to: []string{"east", "west"}, ago: late, want: failover.MoveHealthy},
		"what it was not moved to does not count": {is: placedIn(items{says("east", "Unhealthy", true), says("west", "Healthy", true)}, east, west), ago: late, want: failover.MoveHealthy},
		"the old copy has to go first":            {is: directly, ago: late, want: failover.MoveWaiting},
		"it was moved on":                         {is: placedIn(nil, east), ago: late, want: failover.MoveOver},
		"it is gone":                              {ago: late, want: failover.MoveOver},
		"long ago":                                {is: placedIn(nil, west), ago: failover.DefaultRecent + time.Second, want: failover.MoveOver},
		"not healthy in a longer time":            {is: placedIn(nil, west), ago: late, by: failover.Judging{HealthTimeout: time.Hour}, want: failover.MoveWaiting},
		"not healthy after a shorter one":         {is: placedIn(nil, west), ago: time.Minute, by: failover.Judging{HealthTimeout: time.Second}, want: failover.MoveIll},
		"not as long ago as counts":               {is: placedIn(nil, west), ago: time.Hour, by: failover.Judging{Recent: 2 * time.Hour}, want: failover.MoveIll},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.to == nil {
				tc.to = []string{"west"}
			}
			now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
			if got := (failover.Moved{To: tc.to, At: now.Add(-tc.ago), Well: tc.well}).StateOf(tc.is, tc.by, now); got != tc.want {
				t.Errorf("fares %d, want %d", got, tc.want)
			}
		})
	}
}

// TestMovedTo checks for which moves an outcome will be seen, and where.
func TestMovedTo(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	in := func(name string, replicas int32) workv1alpha2.TargetCluster {
		return workv1alpha2.TargetCluster{Name: name, Replicas: replicas}
	}
	for name, tc := range map[string]struct {
		was  *workv1alpha2.ResourceBinding
		is   []workv1alpha2.TargetCluster
		want []string // nil: none
	}{
		"to another cluster":                {placedIn(nil, in("east", 2)), []workv1alpha2.TargetCluster{in("west", 2)}, []string{"west"}},
		"to one that runs more from now on": {placedIn(nil, in("east", 2), in("north", 2), in("west", 2)), []workv1alpha2.TargetCluster{in("north", 2), in("west", 4)}, []string{"west"}},
		"nowhere else":                      {placedIn(nil, in("east", 2), in("west", 2)), []workv1alpha2.TargetCluster{in("west", 2)}, nil},
		"it was healthy":                    {placedIn([]workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Health: "Healthy"}}, in("east", 2)), []workv1alpha2.TargetCluster{in("west", 2)}, []string{"west"}},
		"it was unhealthy where it was":     {placedIn([]workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Health: "Unhealthy"}}, in("east", 2)), []workv1alpha2.TargetCluster{in("west", 2)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, seen := failover.MovedTo(tc.was, []string{"east"}, tc.is, now)
			if !seen {
				got.To = nil
			}
			if diff := cmp.Diff(failover.Moved{To: tc.want, At: now}, got); diff != "" || seen != (tc.want != nil) {
				t.Errorf("seen %t (-want +got):\n%s", seen, diff)
			}
		})
	}
}

// TestUnderway checks which move is found by the eviction tasks of a binding.
func TestUnderway(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	task := func(from, reason string, ago time.Duration, before ...string) workv1alpha2.GracefulEvictionTask {
		return workv1alpha2.GracefulEvictionTask{FromCluster: from, Reason: reason, CreationTimestamp: ptr.To(metav1.NewTime(noon.Add(-ago))), ClustersBeforeFailover: before}
	}
	undated := task("east", "TaintUntolerated", 0)
	undated.CreationTimestamp = nil
	for name, tc := range map[string]struct {
		tasks []workv1alpha2.GracefulEvictionTask
		want  failover.Moved // none where it goes nowhere
	}{
		"none":                     {},
		"a cluster had to be left": {tasks: []workv1alpha2.GracefulEvictionTask{task("east", "TaintUntolerated", time.Minute)}, want: failover.Moved{To: []string{"north", "west"}, At: noon.Add(-time.Minute)}},
		"it ran in one of those":   {tasks: []workv1alpha2.GracefulEvictionTask{task("east", "ApplicationFailure", time.Minute, "east", "west")}, want: failover.Moved{To: []string{"north"}, At: noon.Add(-time.Minute)}},
		"two, the last one counts": {tasks: []workv1alpha2.GracefulEvictionTask{task("east", "TaintUntolerated", time.Minute), task("south", "TaintUntolerated", time.Hour, "west")}, want: failover.Moved{To: []string{"north", "west"}, At: noon.Add(-time.Minute)}},
		"a better place":           {tasks: []workv1alpha2.GracefulEvictionTask{task("east", "Moved", time.Minute)}},
		"nobody knows since when":  {tasks: []workv1alpha2.GracefulEvictionTask{undated}},
	} {
		t.Run(name, func(t *testing.T) {
			b := placedIn(nil, workv1alpha2.TargetCluster{Name: "north"}, workv1alpha2.TargetCluster{Name: "west"})
			b.Spec.GracefulEvictionTasks = tc.tasks
			got, some := failover.Underway(b)
			if diff := cmp.Diff(tc.want, got); diff != "" || some != (len(tc.want.To) > 0) {
				t.Errorf("some %t (-want +got):\n%s", some, diff)
			}
		})
	}
}
