package hub

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestAwait checks that waiting for the hub is logged at once, and then once a
// minute, with the reason.
func TestAwait(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	var messages []string
	log := funcr.New(func(_, args string) { messages = append(messages, args) }, funcr.Options{})
	reads := 0
	w := waiting{clock: clock, log: log, probe: func(context.Context) error {
		if reads++; reads > 130 {
			return nil
		}
		clock.Step(time.Second)
		if reads > 60 {
			return errors.New("it is starting")
		}
		return errors.New("connection refused")
	}}
	if err := w.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	const says = `"level"=0 "msg"="Waiting for the control plane to be ready" "for"=`
	want := []string{says + `"1s" "why"="connection refused"`, says + `"1m1s" "why"="it is starting"`, says + `"2m1s" "why"="it is starting"`}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := waiting{clock: clocktesting.NewFakeClock(time.Unix(0, 0)), probe: func(context.Context) error {
		cancel()
		return ctx.Err()
	}}
	if err := w.await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
