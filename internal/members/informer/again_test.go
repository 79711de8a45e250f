package informer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// outage is the error of a rule that may answer otherwise after a while.
type outage struct{ after time.Duration }

func (outage) Error() string               { return "no answer" }
func (o outage) RetryAfter() time.Duration { return o.after }

// A rule that failed is asked again when it may answer, though the object stays
// the same.
func TestARuleThatRecoversIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{"ship": outage{time.Minute}}}
		w, reported := fleetOf(ctx, o, ship("ship"))
		var got []string
		for _, step := range []struct {
			answer any
			wait   time.Duration
		}{
			{nil, 0},
			{&kinds.Pending{Of: "a webhook", After: time.Second}, time.Minute},
			{outage{2 * time.Minute}, time.Second},
			{workv1alpha1.ResourceHealthy, time.Minute},
			{nil, time.Minute + time.Second},
			{nil, time.Hour},
		} {
			if step.answer != nil {
				o.say("ship", step.answer)
			}
			<-time.After(step.wait) // of the bubble
			synctest.Wait()
			got = append(got, slices.DeleteFunc(reported(), func(s string) bool { return s == "synced" })...)
			got = append(got, "-")
		}
		want := []string{
			"ship Unknown pending=false no answer", "-", "-",
			"ship Unknown pending=false no answer", "-", "-",
			"ship Healthy pending=false ", "-", "-",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if at, _ := w.read(types.NamespacedName{Namespace: "sea", Name: "ship"}); at.Health != workv1alpha1.ResourceHealthy {
			t.Errorf("in the end: %+v", at)
		}
		if len(w.recheck.due) != 0 || len(w.recheck.kept) != 0 {
			t.Errorf("left: %v, %v", w.recheck.due, w.recheck.kept)
		}
	})
}
