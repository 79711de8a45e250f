package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/answers"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// answered returns the input where the loops decided by what estimators answered
// about capacity, except for the cluster c-002, whose status shows its nodes, but
// not what their Pods request.
func answered(t *testing.T, fits map[string]int32) explain.Input {
	t.Helper()
	in := input(t)
	propagation.ClaimOf(in.Policies[0]).Set(in.Template)
	b := plan.Fleet(plan.FleetInput{Templates: []*unstructured.Unstructured{in.Template}, Policies: in.Policies, Overrides: in.Overrides, Clusters: in.Clusters, Interpreter: interpreter.Native(), Now: noon})[0].Binding.(*workv1alpha2.ResourceBinding)
	b.Spec.Clusters = nil
	delete(b.Annotations, workv1alpha2.SchedulingDecisionAnnotation)
	room := map[string]estimate.Answer{}
	for name, n := range fits {
		room[name] = estimate.Answer{Fits: n}
	}
	situation := placement.Situation{Clusters: placement.NewSnapshot(in.Clusters), Estimates: room, Now: noon}
	if _, answers := fits["c-002"]; !answers {
		situation.Unreported = map[string]string{"c-002": "the label zone"}
	}
	decision, _ := placement.Decide(b, situation, placement.Options{})
	decision.Put(b)
	in.Binding, in.Now = b, noon.Add(12*time.Second)
	return in
}

// TestRoomIsReportedAsItWasCounted checks that a decision by what nodes have capacity
// for is explained by that, and not by the clusters' status, according to which
// each of them could run nine replicas.
func TestRoomIsReportedAsItWasCounted(t *testing.T) {
	for name, fits := range map[string]map[string]int32{
		"room-placed.txt": {"c-000": 1, "c-001": 5},
		"room-lacks.txt":  {"c-000": 0, "c-001": 2, "c-002": 1},
	} {
		in := answered(t, fits)
		explained := explain.Explain(in)
		golden(t, name, explained.Text(explain.TextOptions{}))
		if now := explained.Placement.Now; !now.Same {
			t.Errorf("%s: it would run on %v (%s), where %s stands", name, now.Clusters, now.Error, placement.Text(in.Binding.BindingSpec().Clusters))
		}
	}
	later := answered(t, map[string]int32{"c-000": 1, "c-001": 5})
	later.Now = noon.Add(3 * time.Hour)
	if text := explain.Explain(later).Text(explain.TextOptions{}); !strings.Contains(text, "room by its nodes, 3h ago") {
		t.Errorf("what stands is explained by something else later:\n%s", text)
	}
}

// TestRoomThatIsExceeded checks that a cluster that runs more than was counted to fit there is shown with the room that was counted, and by whom.
func TestRoomThatIsExceeded(t *testing.T) {
	in := answered(t, map[string]int32{"c-000": 9, "c-001": 9, "c-002": 9})
	b := in.Binding.(*workv1alpha2.ResourceBinding)
	record, _ := placement.RecordOf(b)
	at := slices.IndexFunc(record.Estimates.Clusters, func(a answers.Answer) bool { return a.Cluster == b.Spec.Clusters[0].Name })
	record.Estimates.Clusters[at].Takes, record.Estimates.Clusters[at].By = 1, estimate.ByEstimator
	b.Spec.Clusters[0].Replicas = b.Spec.Replicas // all of it runs there
	b.Spec.Clusters = b.Spec.Clusters[:1]
	placement.Decision{Clusters: b.Spec.Clusters, AppliedPlacement: b.Annotations[policyv1alpha1.PolicyPlacementAnnotation], Record: record}.Put(b)
	for _, v := range explain.Explain(in).Placement.Terms[0].Clusters {
		if v.Cluster != b.Spec.Clusters[0].Name {
			continue
		}
		if v.Capacity == nil || *v.Capacity != 1 || v.CountedBy != "estimator" {
			t.Errorf("room %v, counted by %q; want 1, by an estimator", v.Capacity, v.CountedBy)
		}
		return
	}
	t.Error("the cluster is not shown")
}

// TestReplicasOfANewCluster checks that a cluster that has no replicas yet is
// shown as getting some, unless the template is placed nowhere.
func TestReplicasOfANewCluster(t *testing.T) {
	e := explain.Explanation{Placement: &explain.Placement{
		Terms: []explain.Term{{Clusters: []explain.Verdict{{Cluster: "new", Result: explain.Chosen, Replicas: 2}, {Cluster: "old", Result: explain.Chosen, Replicas: 2}}}},
	}}
	row := func(cluster string) string {
		for line := range strings.Lines(e.Text(explain.TextOptions{})) {
			if strings.HasPrefix(line, "  "+cluster+" ") {
				return strings.Join(strings.Fields(line)[5:], " ")
			}
		}
		return ""
	}
	if got := row("new"); got != "2" {
		t.Errorf("placed nowhere: %q", got)
	}
	e.Placement.Stands = &explain.Standing{Clusters: []explain.Target{{Name: "old", Replicas: 4}}}
	if got := row("new") + ", " + row("old"); got != "0 → 2, 4 → 2" {
		t.Errorf("placed in one: %q", got)
	}
}
