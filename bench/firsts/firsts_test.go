package firsts

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFirsts(t *testing.T) {
	f := New()
	f.See("placed", "a")
	first, err := f.All(t.Context(), "placed", 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	f.See("placed", "a") // is not first any more
	f.See("gone", "b")
	if n, last := f.Count("placed"); n != 1 || last != first {
		t.Errorf("seen of %d, last at %v, want of 1 at %v", n, last, first)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.All(ctx, "placed", 2, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("what never comes ends with %v", err)
	}
	go f.See("placed", "b")
	second, err := f.All(t.Context(), "placed", 2, time.Minute)
	if err != nil || second.Before(first) {
		t.Errorf("seen of both at %v: %v, want after %v", second, err, first)
	}
}
