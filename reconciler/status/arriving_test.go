package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestWhatABusyClusterHasYetToReport: that a cluster has yet to report what it gets is no news while it takes up others at
// that moment: when many bindings move into it, each would say so, and say a moment later that the cluster has it.
func TestWhatABusyClusterHasYetToReport(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	const well, unknown = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnknown
	old := item("a", true, well, "1")
	was := reports(yes, yes, old)
	refused := item("b", false, unknown, "")
	refused.AppliedMessage = "forbidden"
	lost := item("a", false, unknown, "1")
	for name, tc := range map[string]struct {
		is            *workv1alpha2.ResourceBindingStatus
		takes         string // the cluster that takes up another Work every 400 ms, for so many seconds
		lasts         time.Duration
		again         bool // these were reported before
		reportedAfter time.Duration
	}{
		"a cluster that takes up nothing":       {is: reports(no, yes, old, item("b", false, unknown, "")), reportedAfter: time.Second},
		"one that takes up others":              {is: reports(no, yes, old, item("b", false, unknown, "")), takes: "b", lasts: 3 * time.Second, reportedAfter: 3800 * time.Millisecond},
		"one that does so for long":             {is: reports(no, yes, old, item("b", false, unknown, "")), takes: "b", lasts: time.Minute, reportedAfter: 10 * time.Second},
		"one that has no Work yet":              {is: reports(no, yes, old), takes: "b", lasts: 3 * time.Second, reportedAfter: 3800 * time.Millisecond},
		"one that reports what it had before":   {is: reports(no, yes, old, item("b", false, unknown, "")), takes: "b", lasts: 3 * time.Second, again: true, reportedAfter: time.Second},
		"another cluster":                       {is: reports(no, yes, old, item("b", false, unknown, "")), takes: "c", lasts: 3 * time.Second, reportedAfter: time.Second},
		"it is refused there":                   {is: reports(no, yes, old, refused), takes: "b", lasts: 3 * time.Second, reportedAfter: time.Second},
		"it is lost in the old one, meanwhile":  {is: reports(no, yes, lost, item("b", false, unknown, "")), takes: "b", lasts: 3 * time.Second, reportedAfter: 100 * time.Millisecond},
		"a cluster that was left is still told": {is: reports(no, yes, old, item("b", true, well, "1"), item("d", true, well, "1")), takes: "b", lasts: 3 * time.Second, reportedAfter: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(0, 0)
			clock := clocktesting.NewFakePassiveClock(start)
			r := New(nil, nil, nil, Options{Clock: clock})
			works := r.reportedChanges()
			b := &workv1alpha2.ResourceBinding{Status: *was}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "b"}}
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "a"}}
			var reportedAfter time.Duration
			for step := 0; reportedAfter == 0 && step < 200; step++ {
				after := time.Duration(step) * 100 * time.Millisecond
				clock.SetTime(start.Add(after))
				if step%4 == 0 && after < tc.lasts {
					now := versioned(tc.takes, fmt.Sprint("other", step), 1, 1)
					before := now.DeepCopy()
					if !tc.again {
						before.Status = workv1alpha1.WorkStatus{}
					}
					works.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now})
				}
				s := &state{key: client.ObjectKey{Name: "web"}, binding: b, status: *tc.is, items: tc.is.AggregatedStatus}
				next, err := r.debounce(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if s.changed && !next.Done {
					reportedAfter = after
				}
			}
			if diff := cmp.Diff(tc.reportedAfter, reportedAfter); diff != "" {
				t.Errorf("told after (-want +got):\n%s", diff)
			}
		})
	}
}
