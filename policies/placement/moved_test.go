package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestTheLastMoveIsKnown: from the decision on, and when its tasks are gone.
func TestTheLastMoveIsKnown(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	b := placedOn(t, deployment(2, one), "a:9 b:9", "a:2", noon)
	in := placement.Situation{Clusters: evictFleet("a:9 b:9", "a", noon), Now: noon}
	d, changed := placement.Decide(b, in, placement.Options{Failover: failover.Rules{Taints: true}})
	if !changed {
		t.Fatalf("it is not moved: %+v", d)
	}
	d.Put(b)
	want := &eviction.Move{From: []string{"a"}, To: []string{"b"}, Why: "untolerated taint {drill:NoExecute}", At: metav1.NewTime(noon)}
	is := func(when string) {
		t.Helper()
		record, _ := placement.RecordOf(b)
		if diff := cmp.Diff(want, record.LastMove); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	is("once it is decided")
	goes := func(when string, want *metav1.Time, work types.UID) {
		t.Helper()
		if got := placement.EndsBeside(b, work); !want.Equal(got) {
			t.Errorf("%s the Work %q goes since %v, want %v", when, work, got, want)
		}
	}
	placement.EndMove(b, []types.UID{"1"}, noon.Add(time.Minute))
	is("while its task is there")
	goes("while its task is there", nil, "1")
	b.Spec.GracefulEvictionTasks = nil
	placement.EndMove(b, []types.UID{"1"}, noon.Add(2*time.Minute))
	want.Ended, want.Beside = ptr.To(metav1.NewTime(noon.Add(2*time.Minute))), []types.UID{"1"}
	is("when that has ended")
	goes("when that has ended", want.Ended, "1")
	goes("when that has ended", nil, "2")
	goes("when that has ended", nil, "")
	placement.EndMove(b, nil, noon.Add(3*time.Minute))
	is("when it is said again")
	b.Spec.Replicas = 3
	in.Now = noon.Add(time.Hour)
	if d, changed = placement.Decide(b, in, placement.Options{Failover: failover.Rules{Taints: true}}); !changed {
		t.Fatal("more replicas change nothing")
	}
	d.Put(b)
	is("after a decision that moves nothing")
	if d, changed = placement.Refused(b, placement.Decision{}, placement.Snapshot{}, "QuotaExceeded", "too much", in.Now); !changed {
		t.Fatal("a refusal changes nothing")
	}
	d.Put(b)
	is("after one that was refused")
}

// TestTheRulesAreNoted: with what is decided, and by no write of their own.
func TestTheRulesAreNoted(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	one := policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	b := placedOn(t, deployment(2, one), "a:9 b:9", "a:2", noon)
	in := placement.Situation{Clusters: evictFleet("a:9 b:9", "", noon), Now: noon}
	decide := func(rules failover.Rules) (placement.Decision, bool) {
		return placement.Decide(b, in, placement.Options{Failover: rules})
	}
	if d, changed := decide(failover.Rules{Taints: true}); changed {
		t.Fatalf("written for the rules alone: %+v", d)
	}
	noted := func(what string, want *failover.Noted) {
		t.Helper()
		record, _ := placement.RecordOf(b)
		if diff := cmp.Diff(want, record.Rules); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	noted("nothing is decided", nil)
	for _, step := range []struct {
		rules failover.Rules
		want  *failover.Noted
	}{
		{failover.Rules{Taints: true, Tolerance: time.Minute}, &failover.Noted{Tolerance: 60, Skew: 20}},
		{failover.Rules{Taints: true, Breaker: failover.Breaker{Skew: 11 * time.Second}}, &failover.Noted{Skew: 11}},
		{failover.Rules{Tolerance: time.Minute}, nil},
	} {
		b.Spec.Replicas++
		d, changed := decide(step.rules)
		if !changed {
			t.Fatal("more replicas change nothing")
		}
		d.Put(b)
		noted("more replicas", step.want)
	}
}
