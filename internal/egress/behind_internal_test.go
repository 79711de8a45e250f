package egress

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestAResolverThatHangs checks that a host behind a proxy does not wait for long for a resolver that knows nothing of the world.
func TestAResolverThatHangs(t *testing.T) {
	hangs := func(ctx context.Context, _ string) ([]netip.AddrPort, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		if err := behind(ctx, hangs, "git.example.com:443"); err != nil {
			t.Errorf("error = %v, want that the proxy finds it", err)
		}
		if waited := time.Since(begun); waited > 5*time.Second {
			t.Errorf("it was waited for %s", waited)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := behind(ctx, hangs, "git.example.com:443"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want that the time is over", err)
		}
	})
}
