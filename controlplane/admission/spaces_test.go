package admission

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestNamespacesWhereNothingGoesOnAreForgotten writes to many short-lived namespaces, such
// as one for each pull request.
func TestNamespacesWhereNothingGoesOnAreForgotten(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	q := newQuota(newLaggingStore(), clock)
	begin := func(namespace string) func(err error) {
		limit := limitOf("10")
		limit.Namespace = namespace
		q.quotas.set(limit)
		b := placed("web", 3)
		b.Namespace = namespace
		ctx, end := q.Begin(t.Context())
		if err := q.Validate(ctx, write(b, nil, false), nil); err != nil {
			t.Fatal(err)
		}
		return func(err error) { end(nil, err) }
	}
	kept := func(when string, want int) {
		t.Helper()
		if got := len(q.spaces); got != want {
			t.Errorf("%s: %d namespaces are kept, want %d", when, got, want)
		}
	}
	for i := range 100 {
		end := begin(fmt.Sprintf("pr-%d", i))
		kept("while a write is under way", 1)
		end(nil)
	}
	kept("when all are stored", 0)
	begin("refused")(apierrors.NewConflict(workv1alpha2Resource, "web", errors.New("stale")))
	kept("when one was not stored", 0)

	begin("unknown")(errors.New("connection lost"))
	kept("while a write may still take effect", 1)
	clock.SetTime(clock.Now().Add(doubt + time.Second))
	begin("next")(nil)
	kept("when it cannot any more", 0)
}
