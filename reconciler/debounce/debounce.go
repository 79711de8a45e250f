// Package debounce coalesces writes of a status that nobody waits for: many small changes
// become one write.
//
// In go an object's key and the change that is due; out comes for how long to
// delay it. The package writes nothing and sets no timers.
package debounce

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Options tune a Debouncer. The zero value delays nothing.
type Options struct {
	// Wait is how long a change is delayed after it last took another form.
	Wait time.Duration
	// MaxWait is how long a change is delayed in all, however often it takes another.
	MaxWait time.Duration
	// Leading has a change written at once if nothing was written about its object for Wait, see
	// Wrote: somebody may wait for it. What follows soon after is delayed.
	Leading bool
	// Clock is the time.
	Clock clock.PassiveClock
}

// Debouncer knows which changes are pending since when. It is safe for use by
// several goroutines.
type Debouncer[K comparable] struct {
	opts Options

	mu      sync.Mutex
	pending map[K]change
	wrote   map[K]time.Time // less than Wait ago; only kept if Leading
}

type change struct {
	form        string
	first, last time.Time
}

// New returns a debouncer without a pending change.
func New[K comparable](o Options) *Debouncer[K] {
	return &Debouncer[K]{opts: o, pending: map[K]change{}, wrote: map[K]time.Time{}}
}

// Delay makes the change of the object under key pending, and returns how long it is to be
// delayed yet; not more than 0 means to write it now. Form distinguishes one change from another.
func (d *Debouncer[K]) Delay(key K, form string) time.Duration {
	return d.delay(key, form, d.opts.Wait)
}

// Await is Delay for a change that is one half of another that is sure to come: it is delayed for as long as may be.
func (d *Debouncer[K]) Await(key K, form string) time.Duration {
	return d.delay(key, form, d.opts.MaxWait)
}

func (d *Debouncer[K]) delay(key K, form string, wait time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Clock.Now()
	c, ok := d.pending[key]
	if at, wrote := d.wrote[key]; !ok && d.opts.Leading && (!wrote || now.Sub(at) >= d.opts.Wait) {
		return 0
	}
	if !ok {
		c = change{first: now, last: now}
	}
	if c.form != form {
		c.form, c.last = form, now
	}
	d.pending[key] = c
	return min(c.last.Add(wait).Sub(now), c.first.Add(d.opts.MaxWait).Sub(now))
}

// Pending reports whether a change of the object under key is pending.
func (d *Debouncer[K]) Pending(key K) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.pending[key]
	return ok
}

// Wrote drops the change of an object, which was written now.
func (d *Debouncer[K]) Wrote(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, key)
	if !d.opts.Leading {
		return
	}
	now := d.opts.Clock.Now()
	maps.DeleteFunc(d.wrote, func(_ K, at time.Time) bool { return now.Sub(at) >= d.opts.Wait })
	d.wrote[key] = now
}

// Forget drops the change of an object: it was written, or is none any more.
func (d *Debouncer[K]) Forget(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, key)
}
