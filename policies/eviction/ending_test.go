package eviction_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// TestEnding checks when a task ends by which a template leaves a cluster for
// another reason than a better place.
func TestEnding(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	since := func(ago time.Duration, edit ...func(*workv1alpha2.GracefulEvictionTask)) workv1alpha2.GracefulEvictionTask {
		out := workv1alpha2.GracefulEvictionTask{FromCluster: "a", Reason: "TaintUntolerated", Producer: "TaintManager", CreationTimestamp: ptr.To(metav1.NewTime(now.Add(-ago)))}
		for _, f := range edit {
			f(&out)
		}
		return out
	}
	grace := func(seconds int32) func(*workv1alpha2.GracefulEvictionTask) {
		return func(t *workv1alpha2.GracefulEvictionTask) { t.GracePeriodSeconds = &seconds }
	}
	suppress := func(yes bool) func(*workv1alpha2.GracefulEvictionTask) {
		return func(t *workv1alpha2.GracefulEvictionTask) { t.SuppressDeletion = &yes }
	}
	because := func(reason string) func(*workv1alpha2.GracefulEvictionTask) {
		return func(t *workv1alpha2.GracefulEvictionTask) { t.Reason, t.Producer = reason, "somebody" }
	}
	moves := func(t *workv1alpha2.GracefulEvictionTask) { t.Producer = workv1alpha2.EvictionProducerScheduler }
	drains := func(t *workv1alpha2.GracefulEvictionTask) { t.Producer = workv1alpha2.EvictionProducerDrain }
	directly := func(t *workv1alpha2.GracefulEvictionTask) { t.PurgeMode = policyv1alpha1.PurgeModeDirectly }
	cases := map[string]struct {
		task   workv1alpha2.GracefulEvictionTask
		runs   string // where it is placed
		ready  string // which clusters have a healthy copy
		serves string // clusters whose old copy may serve
		inPart bool   // but only some of its replicas
		gone   string
		away   string        // clusters that are not heard of
		used   string        // clusters in which something that leaves them may need the copy
		back   time.Duration // until when the scheduler may take the cluster back
		unsure bool          // the scheduler has something to decide
		empty  bool          // the cluster has no Work
		ends   bool
		in     time.Duration // until it ends by time alone
	}{
		"healthy elsewhere":     {task: since(0), runs: "b", ready: "b", ends: true},
		"not yet":               {task: since(time.Minute), runs: "b", in: 9 * time.Minute},
		"one of two targets is": {task: since(0), runs: "b c", ready: "b", in: 10 * time.Minute},
		"its own grace":         {task: since(time.Minute, grace(90)), runs: "b", in: 30 * time.Second},
		"its grace is over, and what is left serves nobody": {task: since(time.Minute, grace(60)), runs: "b", ends: true},
		"its grace is over, and what is left may serve":     {task: since(time.Minute, grace(60)), runs: "b", serves: "a"},
		"the same, with a part of it":                       {task: since(time.Minute, grace(60)), runs: "b", serves: "a", inPart: true},
		"the same, and the application failed there":        {task: since(time.Minute, grace(60), because(workv1alpha2.EvictionReasonApplicationFailure)), runs: "b", serves: "a", inPart: true, ends: true},
		"it failed there, and nobody hears whether it does": {task: since(time.Minute, grace(60), because(workv1alpha2.EvictionReasonApplicationFailure)), runs: "b", serves: "a"},
		"the same, and one target is well":                  {task: since(time.Minute, grace(60)), runs: "b c", ready: "c", serves: "a", ends: true},
		"the same, and the policy had it go first":          {task: since(time.Hour, directly), runs: "b", serves: "a"},
		"the same, and it has gone":                         {task: since(time.Hour, directly), runs: "b", empty: true, ends: true},
		"no grace":                                          {task: since(0, grace(0)), runs: "b", ends: true},
		"nowhere else, however long":                        {task: since(time.Hour)},
		"nowhere else, and another has it moved":            {task: since(time.Hour, because("Maintenance")), serves: "a"},
		"nowhere else, and nothing is left there":           {task: since(time.Hour), empty: true, ends: true},
		"the same, in its time":                             {task: since(time.Minute), empty: true, in: 9 * time.Minute},
		"the scheduler has yet to decide":                   {task: since(time.Minute), runs: "b", ready: "b", unsure: true, in: 9 * time.Minute},
		"it cannot, and its time is over":                   {task: since(time.Hour), runs: "b", ready: "b", serves: "a", unsure: true, ends: true},
		"the same, and what is left is all that may serve":  {task: since(time.Hour), runs: "b", serves: "a", unsure: true},
		"it is placed there still":                          {task: since(time.Hour), runs: "a b", ready: "a b"},
		"kept for ever, by its purge mode":                  {task: since(time.Hour, func(t *workv1alpha2.GracefulEvictionTask) { t.PurgeMode = policyv1alpha1.PurgeModeNever }), runs: "b", ready: "b"},
		"kept until somebody says so":                       {task: since(time.Hour, suppress(true)), runs: "b", ready: "b"},
		"somebody says so":                                  {task: since(0, suppress(false)), runs: "b", ends: true},
		"the cluster left the fleet":                        {task: since(0, suppress(true)), runs: "b", gone: "a", ends: true},
		"it is away, and healthy elsewhere":                 {task: since(0), runs: "b", ready: "b", away: "a"},
		"the same, long after its grace":                    {task: since(time.Hour), runs: "b", ready: "b", serves: "a", away: "a"},
		"the same, and it is drained":                       {task: since(time.Hour, drains), runs: "b", ready: "b", away: "a"},
		"the same, and it is only moved":                    {task: since(time.Hour, moves), runs: "b", ready: "b", away: "a"},
		"the same, and it had to go first":                  {task: since(time.Hour, directly), runs: "b", ready: "b", away: "a"},
		"the same, and somebody says so":                    {task: since(time.Hour, suppress(false)), runs: "b", ready: "b", away: "a", ends: true},
		"the same, and it left the fleet":                   {task: since(time.Hour), runs: "b", ready: "b", away: "a", gone: "a", ends: true},
		"the same, and nothing is left":                     {task: since(time.Hour), runs: "b", ready: "b", away: "a", empty: true, ends: true},
		"another one is away":                               {task: since(0), runs: "b", ready: "b", away: "c", ends: true},
		"another cluster left the fleet":                    {task: since(0), runs: "b", gone: "b", in: 10 * time.Minute},
		"what leaves as well may need it":                   {task: since(time.Hour), runs: "b", ready: "b", used: "a"},
		"the same, and it is moved":                         {task: since(time.Hour, moves), runs: "b", ready: "b", used: "a"},
		"the same, and its cluster is drained":              {task: since(time.Hour, drains), runs: "b", ready: "b", used: "a"},
		"the same, and its policy had it go first":          {task: since(0, directly), runs: "b", ready: "b", used: "a"},
		"the same, and its copy is gone":                    {task: since(0), runs: "b", ready: "b", used: "a", empty: true, ends: true},
		"what leaves another cluster may need it there":     {task: since(0), runs: "b", ready: "b", used: "b", ends: true},
		"it is back, and may be taken back":                 {task: since(time.Hour), runs: "b", ready: "b", back: 5 * time.Second, in: 5 * time.Second},
		"it is back, and has not been taken back":           {task: since(time.Hour), runs: "b", ready: "b", back: -time.Second, ends: true},
		"it is back, and is drained":                        {task: since(time.Hour, drains), runs: "b", ready: "b", back: 5 * time.Second, ends: true},
		"it is back, and somebody says so":                  {task: since(time.Hour, suppress(false)), runs: "b", ready: "b", back: 5 * time.Second, ends: true},
		"it is back, and nothing is left":                   {task: since(0), runs: "b", ready: "b", back: 5 * time.Second, empty: true, ends: true},
		"a task without a time counts from now on":          {task: func() workv1alpha2.GracefulEvictionTask { t := since(0); t.CreationTimestamp = nil; return t }(), runs: "b", in: 10 * time.Minute},
		"a task of the future, as of a clock that jumps":    {task: since(-time.Hour), runs: "b", in: 70 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := func(list string) func(string) bool {
				return func(cluster string) bool { return strings.Contains(list, cluster) }
			}
			spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets(tc.runs), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{tc.task, tc.task}}
			e := eviction.Ending{HasWork: func(cluster string) bool { return cluster == "a" && !tc.empty }, Ready: in(tc.ready), Serves: func(cluster string, whole bool) bool { return in(tc.serves)(cluster) && !(whole && tc.inPart) }, Gone: in(tc.gone), Away: in(tc.away), Serving: in(tc.used), Scheduled: !tc.unsure, Now: now}
			if tc.back != 0 {
				e.Returning = func(string) time.Time { return now.Add(tc.back) }
			}
			tasks, ended, again := e.Of(spec)
			if got := len(ended) > 0 && len(tasks) == 0; got != tc.ends {
				t.Errorf("goes on: %v, ended: %v; want the end: %t", tasks, ended, tc.ends)
			}
			var at time.Duration
			if !again.IsZero() {
				at = again.Sub(now)
			}
			if at != tc.in {
				t.Errorf("ends in %s, want %s", at, tc.in)
			}
			if tc.ends {
				return
			}
			want := tc.task
			if want.CreationTimestamp == nil {
				want.CreationTimestamp = ptr.To(metav1.NewTime(now))
			}
			// The second call changes nothing.
			if diff := cmp.Diff([]workv1alpha2.GracefulEvictionTask{want}, tasks); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEndingOfTwins checks that, of several tasks for one cluster, the first one
// counts, or one that keeps the copy.
func TestEndingOfTwins(t *testing.T) {
	plain := workv1alpha2.GracefulEvictionTask{FromCluster: "a", Producer: "one"}
	keeps := workv1alpha2.GracefulEvictionTask{FromCluster: "a", Producer: "other", SuppressDeletion: ptr.To(true)}
	yes, no := func(string) bool { return true }, func(string) bool { return false }
	none := func(string, bool) bool { return false }
	for _, tasks := range [][]workv1alpha2.GracefulEvictionTask{{plain, keeps}, {keeps, plain}, {plain, keeps, keeps}} {
		spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets("b"), GracefulEvictionTasks: tasks}
		left, ended, _ := eviction.Ending{HasWork: yes, Ready: yes, Serves: none, Gone: no, Scheduled: true, Now: time.Now()}.Of(spec)
		if len(ended) > 0 || len(left) != 1 || left[0].Producer != "other" {
			t.Errorf("ended %v, left %v", ended, left)
		}
	}
}
