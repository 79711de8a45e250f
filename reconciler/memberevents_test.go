package reconciler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/internal/members"
)

// TestHerald: whatever a member reports, there is something to do.
func TestHerald(t *testing.T) {
	busy := 0
	h := herald{func() { busy++ }}
	var got []int
	for _, report := range []func(){
		func() { h.Proven("east") },
		func() { h.Changed("east", &members.Observed{}) },
		func() { h.Synced("east", schema.GroupVersionKind{}) },
		func() { h.KindsChanged("east") },
	} {
		report()
		got = append(got, busy)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4}, got); diff != "" {
		t.Errorf("told so often after each report (-want +got):\n%s", diff)
	}
}
