package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
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

	d, changed := placement.Refused(b, placement.Decision{}, placement.Snapshot{}, workv1alpha2.BindingReasonQuotaExceeded, "quota team: cpu: 3 of 2", now)
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

// TestARefusedMoveSaysWhatStays: what a quota keeps from leaving a cluster says so, also where it had refused the same before
// that was to be left, and not any more once it is not.
func TestARefusedMoveSaysWhatStays(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	b := placedOn(t, deployment(2, policyv1alpha1.Placement{SpreadConstraints: oneCluster()}), "a:9 b:9", "a:2", now)
	b.Spec.Replicas = 3
	const message = "quota team: cpu: 3 of 2"
	refuse := func(in placement.Situation) (placement.Decision, bool) {
		t.Helper()
		d, changed := placement.Decide(b, in, placement.Options{Failover: failover.Rules{Taints: true}})
		if !changed {
			t.Fatal("nothing is decided")
		}
		return placement.Refused(b, d, in.Clusters, workv1alpha2.BindingReasonQuotaExceeded, message, now)
	}
	stays := func(when string, in placement.Situation, want []string, why string) {
		t.Helper()
		d, changed := refuse(in)
		if !changed {
			t.Fatalf("%s: nothing is said of it", when)
		}
		d.Put(b)
		got, _ := placement.RecordOf(b)
		clusters, stayMessage := []string(nil), ""
		if got.Stays != nil {
			clusters, stayMessage = got.Stays.Clusters, got.Stays.Message
		}
		if diff := cmp.Diff(want, clusters); diff != "" || stayMessage != why || got.Message != message || placement.Text(b.Spec.Clusters) != "{a:2}" {
			t.Errorf("%s: it stays as %q, %q, in %s (-want +got):\n%s", when, stayMessage, got.Message, placement.Text(b.Spec.Clusters), diff)
		}
		if reported := got.EvictionReported != nil; reported != (want != nil) && want != nil {
			t.Errorf("%s: it is not to be told", when)
		}
		if _, again := refuse(in); again {
			t.Errorf("%s: it is written again and again", when)
		}
	}
	well := placement.Situation{Clusters: evictFleet("a:9 b:9", "", now), Now: now}
	drained := placement.Situation{Clusters: evictFleet("a:9 b:9", "a", now.Add(-time.Hour)), Now: now}
	stays("as it grows", well, nil, "")
	stays("as it is to leave", drained, []string{"a"}, "It stays in a (untolerated taint {drill:NoExecute}): its move is refused: "+message)
	stays("as it may stay", well, nil, "")
}

// TestARefusalKeepsNoClusterInTheFleet: what cannot grow elsewhere leaves a cluster that is leaving all the same.
func TestARefusalKeepsNoClusterInTheFleet(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	leaves := func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }
	fleet := placement.NewSnapshot([]*clusterv1alpha1.Cluster{cluster("a", 9), cluster("b", 9, leaves)})
	b := binding(deployment(8, policyv1alpha1.Placement{}, on("a", 4), on("b", 4), on("gone", 1)))
	for _, step := range []struct{ written, want string }{{"yes", "{a:4, gone:1}"}, {"no", "{a:4, gone:1}"}} {
		d, changed := placement.Refused(b, placement.Decision{}, fleet, workv1alpha2.BindingReasonQuotaExceeded, "quota team: cpu: 9 of 5", now)
		if changed {
			d.Put(b)
		}
		if got := placement.Text(b.Spec.Clusters); changed != (step.written == "yes") || got != step.want {
			t.Errorf("it is placed in %s (news: %t), want %s (%s)", got, changed, step.want, step.written)
		}
	}
}
