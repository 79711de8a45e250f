package eviction_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// TestMove checks what is recorded about a move, and the text about it.
func TestMove(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	in := func(pairs ...any) (out []workv1alpha2.TargetCluster) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, workv1alpha2.TargetCluster{Name: pairs[i].(string), Replicas: int32(pairs[i+1].(int))})
		}
		return out
	}
	tasks := func(of ...string) (out []workv1alpha2.GracefulEvictionTask) {
		for _, name := range of {
			out = append(out, workv1alpha2.GracefulEvictionTask{FromCluster: name})
		}
		return out
	}
	at, three := metav1.NewTime(noon), ptr.To(metav1.NewTime(noon.Add(9*time.Minute)))
	for name, tc := range map[string]struct {
		before, after []workv1alpha2.TargetCluster
		left          []workv1alpha2.GracefulEvictionTask
		want          *eviction.Move
		text          string // 12 minutes later, where the tasks became those that are left 3 minutes before that
	}{
		"it runs nowhere before":            {after: in("east", 2)},
		"it runs nowhere after":             {before: in("east", 2)},
		"it is only divided in another way": {before: in("east", 2, "west", 1), after: in("east", 1, "west", 2)},
		"to another": {
			before: in("west", 2), after: in("east", 2),
			want: &eviction.Move{From: []string{"west"}, To: []string{"east"}, Why: "it failed", At: at, Ended: three},
			text: "from west to east at 2026-01-02 12:00:00 UTC, 12m ago: it failed; the old copy went at 12:09:00 UTC",
		},
		"the old copy is there still": {
			before: in("west", 2), after: in("east", 2), left: tasks("north", "west"),
			want: &eviction.Move{From: []string{"west"}, To: []string{"east"}, Why: "it failed", At: at},
		},
		"to one that has some, and one that has as much as before": {
			before: in("west", 2, "south", 1, "east", 1, "north", 1), after: in("north", 1, "east", 4), left: tasks("north"),
			want: &eviction.Move{From: []string{"south", "west"}, To: []string{"east"}, Why: "it failed", At: at, Ended: three},
			text: "from south, west to east at 2026-01-02 12:00:00 UTC, 12m ago: it failed; the old copy went at 12:09:00 UTC",
		},
		"one of several copies": {
			before: in("west", 2, "east", 2), after: in("east", 2),
			want: &eviction.Move{From: []string{"west"}, Why: "it failed", At: at, Ended: three},
			text: "from west at 2026-01-02 12:00:00 UTC, 12m ago: it failed; the old copy went at 12:09:00 UTC",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := eviction.MoveOf(tc.before, tc.after, "it failed", noon.Add(300*time.Millisecond)).Until(tc.left, noon.Add(9*time.Minute))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, got.Until(nil, noon.Add(10*time.Minute))); got != nil && got.Ended != nil && diff != "" {
				t.Errorf("it ended twice (-first +second):\n%s", diff)
			}
			if text := got.Past(tc.left, noon.Add(12*time.Minute)); text != tc.text {
				t.Errorf("reads %q, want %q", text, tc.text)
			}
		})
	}
}

// TestTainted: what left a cluster for a taint, other than that of a drain, may be wanted back there.
func TestTainted(t *testing.T) {
	in := func(names ...string) *workv1alpha2.ResourceBindingSpec {
		spec := &workv1alpha2.ResourceBindingSpec{}
		for _, name := range names {
			spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: name})
		}
		return spec
	}
	move := func(why string) *eviction.Move {
		return &eviction.Move{From: []string{"east", "west"}, To: []string{"north"}, Why: why}
	}
	for name, tc := range map[string]struct {
		move *eviction.Move
		runs *workv1alpha2.ResourceBindingSpec
		want []string
	}{
		"it did not move":            {runs: in("north")},
		"for the taint of an admin":  {move: move("untolerated taint {a:NoExecute}"), runs: in("north"), want: []string{"east", "west"}},
		"it is in one of them again": {move: move("untolerated taint {a:NoExecute}"), runs: in("east", "north"), want: []string{"west"}},
		"for a drain":                {move: move("untolerated taint {cluster.flotilla.io/drain:NoExecute}"), runs: in("north")},
		"for another policy":         {move: move("its policy changed"), runs: in("north")},
		"it runs nowhere":            {move: move("untolerated taint {a:NoExecute}"), runs: in()},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.move.Tainted(tc.runs)); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}
