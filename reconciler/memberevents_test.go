package reconciler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/internal/members"
)

// TestMemberEvents: whatever a member reports, there is something to do.
func TestMemberEvents(t *testing.T) {
	busy := 0
	e := memberEvents{func() { busy++ }}
	var got []int
	for _, report := range []func(){
		func() { e.Proven("east") },
		func() { e.Changed("east", &members.Observed{}) },
		func() { e.Synced("east", schema.GroupVersionKind{}) },
		func() { e.KindsChanged("east") },
	} {
		report()
		got = append(got, busy)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4}, got); diff != "" {
		t.Errorf("calls of busy after each report (-want +got):\n%s", diff)
	}
}
