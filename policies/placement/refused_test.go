package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestWhatARefusalKeeps: a quota that refuses a placement takes nothing from what is known of the one that stands, such as how
// often the application was moved: it would be moved sooner the next time.
func TestWhatARefusalKeeps(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	b := placedOn(t, deployment(2, policyv1alpha1.Placement{SpreadConstraints: oneCluster()}), "a:9 b:9", "a:2", now)
	was, _ := placement.RecordOf(b)
	was.Moves = &failover.Moves{Count: 3, At: metav1.NewTime(now.Add(-time.Minute))}
	was.Drained = []string{"b"}
	placement.Decision{Clusters: b.Spec.Clusters, AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement), Record: was}.Put(b)

	d, changed := placement.Refused(b, workv1alpha2.BindingReasonQuotaExceeded, "quota team: cpu: 3 of 2", now)
	if !changed {
		t.Fatal("nothing is said of it")
	}
	d.Put(b)
	got, _ := placement.RecordOf(b)
	want := placement.Record{
		Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "quota team: cpu: 3 of 2", Cause: got.Cause, At: metav1.NewTime(now),
		Placed: &was.At, Moves: was.Moves, Drained: was.Drained,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}
