package crew_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/flotilla-io/flotilla/internal/crew"
)

func TestCrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running atomic.Int32
		work := func(ctx context.Context) {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
		}

		c := crew.New()
		early := c.Join(work)
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			c.Run(ctx)
		}()
		c.Join(work)
		synctest.Wait()
		if got := running.Load(); got != 2 {
			t.Fatalf("running = %d, want those who joined before and after the start", got)
		}

		early.Stop()
		early.Stop()
		<-early.Done()
		if got := running.Load(); got != 1 {
			t.Fatalf("running = %d, want only the one that was not stopped", got)
		}

		cancel()
		<-returned
		if got := running.Load(); got != 0 {
			t.Fatalf("running = %d after Run returned", got)
		}
	})
}
