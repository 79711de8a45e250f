package timerslack

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestRest: rest begins once nothing was asked for a while, ends with the first that is, and
// begins again; an end leaves the timers as they are while a server works.
func TestRest(t *testing.T) {
	clock, set := clocktesting.NewFakeClock(time.Unix(1e9, 0)), make(chan time.Duration)
	r := newRest(clock, func(slack time.Duration) { set <- slack })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(ended)
	}()
	wait := func() {
		for !clock.HasWaiters() {
			if t.Context().Err() != nil {
				t.Fatal("it does not look again")
			}
		}
		clock.Step(calm)
	}
	is := func(want time.Duration) {
		t.Helper()
		if got := <-set; got != want {
			t.Fatalf("the slack is set to %s, want %s", got, want)
		}
	}
	r.Busy()
	wait() // it was busy
	wait()
	is(Resting)
	if clock.HasWaiters() {
		t.Error("it has a timer while it rests")
	}
	r.Busy()
	r.Busy() // does not wait
	is(Usual)
	wait() // it was busy
	wait()
	is(Resting)
	cancel()
	is(Usual)
	<-ended
}

// TestRestOfNone: where the slack is another's to say, nothing is done.
func TestRestOfNone(t *testing.T) {
	var r *Rest
	r.Busy()
	r.Run(t.Context())
}
