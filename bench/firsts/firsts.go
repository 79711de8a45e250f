// Package firsts notes when something was first seen of each of several objects.
//
// In go sightings, as they come; out comes when the last of so many was. The package
// watches nothing itself.
package firsts

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Firsts notes when something was first seen of each of several objects. One
// may wait at a time.
type Firsts struct {
	mu      sync.Mutex
	at      map[string]map[string]time.Time // what → of which → when
	changed chan struct{}
}

// New returns one that has seen nothing.
func New() *Firsts {
	return &Firsts{at: map[string]map[string]time.Time{}, changed: make(chan struct{}, 1)}
}

// See notes that something is seen of an object now.
func (f *Firsts) See(what, of string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[what] == nil {
		f.at[what] = map[string]time.Time{}
	}
	if _, known := f.at[what][of]; known {
		return
	}
	f.at[what][of] = time.Now()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// All waits until something was seen of n objects, and returns when it was seen
// of the last one.
func (f *Firsts) All(ctx context.Context, what string, n int, most time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		seen, last := f.Count(what)
		if seen >= n {
			return last, nil
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait for %s: seen of %d out of %d: %w", what, seen, n, ctx.Err())
		}
	}
}

// Count returns of how many objects something was seen, and when of the last.
func (f *Firsts) Count(what string) (int, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := time.Time{}
	for _, at := range f.at[what] {
		if at.After(last) {
			last = at
		}
	}
	return len(f.at[what]), last
}
