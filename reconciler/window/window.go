// Package window holds back writes of a status that nobody waits for, so that
// many small changes become one write.
//
// In go an object's key and the change that is due; out comes for how long to
// hold it back. The package writes nothing and sets no timers.
package window

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Options tune a Window. The zero value holds nothing back.
type Options struct {
	// Quiet is how long a change is held back after it last took another form.
	Quiet time.Duration
	// Most is how long a change is held back in all, however much it moves.
	Most time.Duration
	// Clock is the time.
	Clock clock.PassiveClock
}

// Window knows which changes are held back since when. It is safe for use by
// several goroutines.
type Window[K comparable] struct {
	options Options

	mu   sync.Mutex
	held map[K]change
}

type change struct {
	form        string
	first, last time.Time
}

// New returns a window that holds nothing back yet.
func New[K comparable](o Options) *Window[K] {
	return &Window[K]{options: o, held: map[K]change{}}
}

// Hold returns for how long the change of the object under key is to be held
// back; not more than 0 means to write it now. Form tells one change from
// another.
func (w *Window[K]) Hold(key K, form string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.options.Clock.Now()
	c, ok := w.held[key]
	if !ok {
		c = change{first: now, last: now}
	}
	if c.form != form {
		c.form, c.last = form, now
	}
	w.held[key] = c
	return min(c.last.Add(w.options.Quiet).Sub(now), c.first.Add(w.options.Most).Sub(now))
}

// Holds reports whether a change of the object under key is held back.
func (w *Window[K]) Holds(key K) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.held[key]
	return ok
}

// Clear forgets the change of an object: it was written, or is none any more.
func (w *Window[K]) Clear(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, key)
}
