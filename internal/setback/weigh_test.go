package setback_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestWeigh: who acts in a member before the hub has looked at it is told that the hub
// knows less than that.
func TestWeigh(t *testing.T) {
	s := newStore("40")
	system := s.system(t)
	before := client.MergeFrom(system.DeepCopy())
	history := hubclaim.History{Runs: []hubclaim.Run{{Number: 3, ID: "c", Began: 20}, {Number: 4, ID: "d", Began: 30}}, Forgiven: []hubclaim.Lost{{ID: "f"}}}
	system.Annotations = map[string]string{clusterv1alpha1.HistoryAnnotation: history.Encode()}
	if err := s.Patch(t.Context(), system, before); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		mark   *hubclaim.Mark
		want   error
		opened int64
	}{
		"a member that was never marked":         {nil, nil, 0},
		"one that has seen the last run":         {&hubclaim.Mark{Run: 4, ID: "d", Revision: 40}, nil, 0},
		"one that has seen more of it":           {&hubclaim.Mark{Run: 4, ID: "d", Revision: 41}, setback.ErrBehind, 0},
		"one that has seen the run before":       {&hubclaim.Mark{Run: 3, ID: "c", Revision: 30}, nil, 0},
		"one that has seen more of that":         {&hubclaim.Mark{Run: 3, ID: "c", Revision: 31}, setback.ErrBehind, 0},
		"one that has seen another run":          {&hubclaim.Mark{Run: 4, ID: "x", Revision: 1}, setback.ErrBehind, 0},
		"one that has seen a later run":          {&hubclaim.Mark{Run: 5, ID: "e", Revision: 1}, setback.ErrBehind, 0},
		"one that has seen a run that is let go": {&hubclaim.Mark{Run: 5, ID: "f", Revision: 99}, nil, 0},
		"what is less than a start writes":       {&hubclaim.Mark{Run: 4, ID: "d", Revision: 36}, setback.ErrBehind, 35},
		"what the present run has shown":         {&hubclaim.Mark{Run: 4, ID: "d", Revision: 36}, nil, 30},
		"more of an earlier run than there was":  {&hubclaim.Mark{Run: 3, ID: "c", Revision: 29}, setback.ErrBehind, 25},
		"all of an earlier run":                  {&hubclaim.Mark{Run: 3, ID: "c", Revision: 25}, nil, 25},
		"more of a run that is let go":           {&hubclaim.Mark{Run: 3, ID: "f", Revision: 29}, nil, 25},
		"what the last run has shown":            {&hubclaim.Mark{Run: 4, ID: "d", Revision: 35}, nil, 35},
	} {
		opened := func(context.Context) (int64, error) { return tc.opened, nil }
		if err := setback.Weigh(t.Context(), s, opened, "east", tc.mark); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
