// Package crew runs functions that join over time under one context, and waits
// for all of them when that context ends.
//
// In go functions that block until their context is done; out comes one Run
// that returns when the last of them has. The package restarts nothing and
// recovers nothing: a function that returns has left.
package crew

import (
	"context"
	"sync"
)

// Crew is a set of running functions. The zero value is not ready: use New.
type Crew struct {
	mu      sync.Mutex
	pending []*Hand
	wake    chan struct{}
}

// Hand is one function of a crew.
type Hand struct {
	work func(context.Context)
	quit chan struct{}
	once sync.Once
	done chan struct{}
}

// New returns a crew that nobody has joined yet.
func New() *Crew {
	return &Crew{wake: make(chan struct{}, 1)}
}

// Join adds a function. It starts once Run runs, and its context ends when
// Run's does or when the hand is stopped.
func (c *Crew) Join(work func(context.Context)) *Hand {
	hand := &Hand{work: work, quit: make(chan struct{}), done: make(chan struct{})}
	c.mu.Lock()
	c.pending = append(c.pending, hand)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return hand
}

// Run starts all who have joined and who join later, until ctx ends. It returns
// when all of them have.
func (c *Crew) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		for _, hand := range c.take() {
			running.Go(func() { hand.run(ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
	}
}

func (c *Crew) take() []*Hand {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.pending
	c.pending = nil
	return out
}

// Stop ends the hand's context. It may be called more than once and does not
// wait; Done does.
func (h *Hand) Stop() {
	h.once.Do(func() { close(h.quit) })
}

// Done is closed when the function has returned.
func (h *Hand) Done() <-chan struct{} { return h.done }

func (h *Hand) run(ctx context.Context) {
	defer close(h.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-h.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	h.work(ctx)
}
