// Package sharing lets those who ask for the same, at a time or soon after one another, share the answer.
//
// In go keys, and functions that ask; out come their answers. An answer is shared with those alone who accept one that was asked for
// when it was; a fault only with those who waited for it. Who gives up leaves the others their answer. There are no timers.
package sharing

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Answers are what was answered lately. It may be used from several goroutines.
type Answers[V any] struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	calls *lru.Cache // *call[V] by key
}

// call is one question: it is being asked, or was answered.
type call[V any] struct {
	began   time.Time
	cancel  context.CancelFunc
	done    chan struct{} // closed once there are answer and err
	answer  V
	err     error
	waiting int // how many do
}

// NewAnswers returns Answers that keep so many of them.
func NewAnswers[V any](most int, c clock.PassiveClock) *Answers[V] {
	return &Answers[V]{clock: c, calls: lru.New(most)}
}

// Get returns the answer for a key. It takes one that was asked for after since, and otherwise asks. The context
// of ask ends when nobody waits any more.
func (a *Answers[V]) Get(ctx context.Context, key any, since time.Time, ask func(context.Context) (V, error)) (V, error) {
	c := a.join(ctx, key, since, ask)
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	a.leave(key, c)
	var none V
	select {
	case <-c.done:
		return c.answer, c.err
	default:
		return none, ctx.Err()
	}
}

// join returns the call for a key, a new one if there is none that is new enough.
func (a *Answers[V]) join(ctx context.Context, key any, since time.Time, ask func(context.Context) (V, error)) *call[V] {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, ok := a.calls.Get(key); ok {
		if c := found.(*call[V]); c.began.After(since) {
			c.waiting++
			return c
		}
	}
	c := &call[V]{began: a.clock.Now(), done: make(chan struct{}), waiting: 1}
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	a.calls.Add(key, c)
	go func() {
		defer c.cancel()
		answer, err := ask(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		if c.answer, c.err = answer, err; err != nil {
			a.forget(key, c)
		}
		close(c.done)
	}()
	return c
}

// leave ends the wait for a call, and the call if nobody else waits for it.
func (a *Answers[V]) leave(key any, c *call[V]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.waiting--; c.waiting > 0 {
		return
	}
	select {
	case <-c.done:
	default:
		a.forget(key, c)
		c.cancel()
	}
}

// forget makes the next one ask anew.
func (a *Answers[V]) forget(key any, c *call[V]) {
	if now, ok := a.calls.Get(key); ok && now.(*call[V]) == c {
		a.calls.Remove(key)
	}
}
