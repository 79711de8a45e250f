// Package overrun counts builds that go on after the one who asked for them has left.
//
// In go builds that begin and end, each of a tenant; out comes whether one more may begin in this process. kustomize cannot be
// interrupted: a build whose time is over keeps its processor and its memory. Until it has really ended no other one of its tenant
// begins, and none of anybody while there are many: else a tenant whose build is tried again and again takes all memory. The package
// ends no build.
package overrun

import (
	"context"
	"errors"
	"sync"
)

// ErrFull says that no build may begin now.
var ErrFull = errors.New("a build whose time was over is still running, and no other one begins beside it: tried again later")

// Overruns are those of one process. Use New.
type Overruns struct {
	most int

	mu  sync.Mutex
	of  map[string]int // by tenant, those that go on
	all int
}

// New returns Overruns, of which no more than most go on while another build begins.
func New(most int) *Overruns { return &Overruns{most: most, of: map[string]int{}} }

// Build is one that began. Its methods may be called more than once.
type Build struct {
	overruns    *Overruns
	tenant      string
	left, ended bool
}

// Begin begins a build of a tenant, or returns ErrFull.
func (o *Overruns) Begin(tenant string) (*Build, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all >= o.most || o.of[tenant] > 0 {
		return nil, ErrFull
	}
	return &Build{overruns: o, tenant: tenant}, nil
}

// Await returns when the build is done, or when ctx ends: then it returns the cause of that, and the build goes on.
func (b *Build) Await(ctx context.Context, build func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer b.End()
		build()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		b.Leave()
		return context.Cause(ctx)
	}
}

// Leave says that nobody waits for the build any more.
func (b *Build) Leave() {
	b.overruns.mu.Lock()
	defer b.overruns.mu.Unlock()
	if !b.ended && !b.left {
		b.left = true
		b.overruns.add(b.tenant, 1)
	}
}

// End says that the build has really ended.
func (b *Build) End() {
	b.overruns.mu.Lock()
	defer b.overruns.mu.Unlock()
	if b.left && !b.ended {
		b.overruns.add(b.tenant, -1)
	}
	b.ended = true
}

func (o *Overruns) add(tenant string, n int) {
	o.all += n
	if o.of[tenant] += n; o.of[tenant] == 0 {
		delete(o.of, tenant)
	}
}
