package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFirsts(t *testing.T) {
	f := newFirsts()
	f.see("placed", "a")
	first, err := f.all(t.Context(), "placed", 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	f.see("placed", "a") // is not first any more
	f.see("gone", "b")
	if n, last := f.count("placed"); n != 1 || last != first {
		t.Errorf("seen of %d, last at %v, want of 1 at %v", n, last, first)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.all(ctx, "placed", 2, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("what never comes ends with %v", err)
	}
	go f.see("placed", "b")
	second, err := f.all(t.Context(), "placed", 2, time.Minute)
	if err != nil || second.Before(first) {
		t.Errorf("seen of both at %v: %v, want after %v", second, err, first)
	}
}
