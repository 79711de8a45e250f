package drain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// TestTogether: what has finished, is refused or has gone stands among the rows, once, and the total stays the same.
func TestTogether(t *testing.T) {
	row := func(name string, state drain.State) drain.Row {
		return drain.Row{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name, State: state}
	}
	others := row("web", drain.Left)
	others.APIVersion = "sea.example/v1"
	gone := row("old", drain.Gone)
	gone.Why = "it was deleted"
	for name, tc := range map[string]struct {
		before, now, want []drain.Row
		totals            drain.Totals
		text              string
	}{
		"nothing runs there": {},
		"the first look":     {now: []drain.Row{row("web", drain.Waits)}, want: []drain.Row{row("web", drain.Waits)}, totals: drain.Totals{Total: 1, Moving: 1}},
		"each has ended in another way": {
			before: []drain.Row{row("api", drain.Waits), row("import", drain.Waits), row("kept", drain.Waits), row("old", drain.Waits), row("stuck", drain.Waits), row("web", drain.Waits)},
			now:    []drain.Row{row("api", drain.Leaves), row("import", drain.Finished), row("kept", drain.Stays), row("stuck", drain.Refused), row("web", drain.Left)},
			want:   []drain.Row{row("api", drain.Leaves), row("import", drain.Finished), row("kept", drain.Stays), gone, row("stuck", drain.Refused), row("web", drain.Left)},
			totals: drain.Totals{Total: 6, Moving: 1, Left: 1, Gone: 1, Finished: 1, Refused: 1, Stay: 1}, text: "1 left, 1 deleted, 1 finished there, 1 refused, 1 kept there",
		},
		"what is gone stays so":      {before: []drain.Row{gone}, want: []drain.Row{gone}, totals: drain.Totals{Total: 1, Gone: 1}, text: "1 deleted"},
		"what is made anew is there": {before: []drain.Row{gone}, now: []drain.Row{row("old", drain.Left)}, want: []drain.Row{row("old", drain.Left)}, totals: drain.Totals{Total: 1, Left: 1}, text: "1 left"},
		"two kinds of one name": {
			before: []drain.Row{row("web", drain.Waits), others}, now: []drain.Row{row("web", drain.Refused), others}, want: []drain.Row{row("web", drain.Refused), others},
			totals: drain.Totals{Total: 2, Left: 1, Refused: 1}, text: "1 left, 1 refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := drain.Together(tc.before, tc.now)
			if diff := cmp.Diff(tc.want, got); diff != "" && len(tc.want)+len(got) > 0 {
				t.Errorf("(-want +got):\n%s", diff)
			}
			totals := drain.Count(got)
			if diff := cmp.Diff(tc.totals, totals); diff != "" || totals.String() != tc.text {
				t.Errorf("%q, want %q (-want +got):\n%s", totals, tc.text, diff)
			}
		})
	}
}

// TestAMoveThatIsRefused: a cluster that does not take the new copy for a while refuses its move.
func TestAMoveThatIsRefused(t *testing.T) {
	east := cluster("east", 9)
	east.Spec.Taints = drain.Taints()
	denied := workv1alpha2.AggregatedStatusItem{ClusterName: "west", AppliedMessage: "denied by a policy."}
	const kept, next = "kept until west is healthy", ": see what keeps that from it: flotilla explain deployment/web -n shop; to give the old copy up: " + giveUp + "\n"
	for name, tc := range map[string]struct {
		items []workv1alpha2.AggregatedStatusItem
		to    []string
		was   []string // where it ran before
		age   time.Duration
		want  string
	}{
		"it says so for a minute":     {items: []workv1alpha2.AggregatedStatusItem{denied}, to: []string{"west"}, age: time.Minute, want: "Refused Deployment shop/web: east=2 -> west=2 (west does not take it: denied by a policy)" + next},
		"it has only begun":           {items: []workv1alpha2.AggregatedStatusItem{denied}, to: []string{"west"}, age: time.Second, want: "Leaves Deployment shop/web: east=2 -> west=2 (" + kept + ")" + next},
		"it took it":                  {items: []workv1alpha2.AggregatedStatusItem{{ClusterName: "west", Applied: true}}, to: []string{"west"}, age: time.Hour, want: "Leaves Deployment shop/web: east=2 -> west=2 (" + kept + ")" + next},
		"it has said nothing":         {to: []string{"west"}, age: time.Hour, want: "Leaves Deployment shop/web: east=2 -> west=2 (" + kept + ")" + next},
		"another one is enough":       {items: []workv1alpha2.AggregatedStatusItem{denied}, to: []string{"north", "west"}, was: []string{"north", "west"}, age: time.Hour, want: "Leaves Deployment shop/web: east=2 -> north=2, west=2 (kept until one of north, west is healthy)" + next},
		"one of two does not take it": {items: []workv1alpha2.AggregatedStatusItem{denied}, to: []string{"north", "west"}, age: time.Hour, want: "Refused Deployment shop/web: east=2 -> north=2, west=2 (west does not take it: denied by a policy)" + next},
		"it is placed there no more":  {items: []workv1alpha2.AggregatedStatusItem{denied}, to: []string{"north"}, age: time.Hour, want: "Leaves Deployment shop/web: east=2 -> north=2 (kept until north is healthy)" + next},
	} {
		t.Run(name, func(t *testing.T) {
			b := running("web", 2, divided(), func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = nil
				for _, name := range tc.to {
					b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
				}
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
					FromCluster: "east", Replicas: ptr.To[int32](2), Producer: workv1alpha2.EvictionProducerDrain, Reason: workv1alpha2.EvictionReasonTaintUntolerated,
					CreationTimestamp: &metav1.Time{Time: noon.Add(-tc.age)}, ClustersBeforeFailover: tc.was,
				}}
				if tc.was != nil {
					b.Spec.GracefulEvictionTasks[0].Producer, b.Spec.GracefulEvictionTasks[0].Reason = workv1alpha2.EvictionProducerScheduler, workv1alpha2.EvictionReasonMoved
				}
				b.Status.AggregatedStatus = tc.items
			})
			row, _ := drain.RowOf(b, east, noon)
			if diff := cmp.Diff(tc.want, text([]drain.Row{row})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHolds: a row that leaves says what becomes of its volumes, and one that stays does not.
func TestHolds(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db", "namespace": "shop"},
		"spec": map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}},
	}}
	const stay = "the PersistentVolumeClaims data-db-* stay in east"
	for name, tc := range map[string]struct {
		row  drain.Row
		want string
	}{
		"it leaves":                    {drain.Row{State: drain.Leaves}, "it takes no data along: " + stay + ", and elsewhere it goes on with those that are there, else with empty ones"},
		"it is to leave":               {drain.Row{State: drain.Waits}, "it takes no data along: " + stay + ", and elsewhere it goes on with those that are there, else with empty ones"},
		"it leaves for what it had":    {drain.Row{State: drain.Leaves, To: []workv1alpha2.TargetCluster{{Name: "west"}}}, "it takes no data along: " + stay + "; west still has data-db-0, and it goes on with that, without what was written in east since"},
		"it leaves, and others run on": {drain.Row{State: drain.Leaves, RunsOn: true}, stay},
		"it stays":                     {drain.Row{State: drain.Stays}, ""},
		"its move is refused":          {drain.Row{State: drain.Refused}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			row := tc.row
			row.APIVersion, row.Kind = "apps/v1", "StatefulSet"
			if asks := row.HasData(); asks != (tc.want != "") {
				t.Errorf("it needs its template: %t", asks)
			}
			if row.Holds(set, "east", volumes.Found{"west": {{Namespace: "shop", Name: "data-db-0"}}}); row.Data != tc.want {
				t.Errorf("got  %q\nwant %q", row.Data, tc.want)
			}
		})
	}
}
