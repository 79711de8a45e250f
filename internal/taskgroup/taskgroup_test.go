package taskgroup_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/flotilla-io/flotilla/internal/taskgroup"
)

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running atomic.Int32
		work := func(ctx context.Context) {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
		}

		g := taskgroup.New()
		early := g.Go(work)
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			g.Run(ctx)
		}()
		g.Go(work)
		synctest.Wait()
		if got := running.Load(); got != 2 {
			t.Fatalf("running = %d, want those that were added before and after the start", got)
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
