package execution

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// TestWhatWaitsForItsDefinition: an object that the member does not create, as it is deleting the definition
// of its kind, is created soon after there is a new definition, however long that took.
func TestWhatWaitsForItsDefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		least time.Duration // how soon it is looked at again after many tries
		most  time.Duration
	}{
		"the definition is being deleted": {fmt.Errorf("%w: Boat", members.ErrDefinitionLeaves), longestRemoval, longestRemoval},
		"there is none":                   {fmt.Errorf("%w: Boat", members.ErrNotServed), time.Minute, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := testWorker(&edge{}, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			s := &state{key: workKey, work: testWork(manifestText)}
			for range 20 {
				next, err := w.next(t.Context(), s, loop.Next{}, tc.err, w.queue.Begin(workKey))
				if err != nil {
					t.Fatal(err)
				}
				if next.RequeueAfter > tc.most {
					t.Errorf("looks again after %s", next.RequeueAfter)
				}
			}
			if next, _ := w.next(t.Context(), s, loop.Next{}, tc.err, w.queue.Begin(workKey)); next.RequeueAfter < tc.least {
				t.Errorf("looks again after %s", next.RequeueAfter)
			}
			if !waits(w, func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnKinds }) {
				t.Error("it is not looked at when kinds change")
			}
		})
	}
}
