// Package taskgroup runs tasks that are added over time under one context, and waits for all
// of them when that context ends.
//
// In go functions that block until their context is done; out comes one Run
// that returns when the last of them has. The package restarts nothing and
// recovers nothing: a function that returns is done.
package taskgroup

import (
	"context"
	"sync"
)

// Group is a set of running tasks. The zero value is not ready: use New.
type Group struct {
	mu      sync.Mutex
	pending []*Task
	wake    chan struct{}
}

// Task is one function of a group.
type Task struct {
	work func(context.Context)
	quit chan struct{}
	once sync.Once
	done chan struct{}
}

// New returns a group without tasks.
func New() *Group {
	return &Group{wake: make(chan struct{}, 1)}
}

// Go adds a task. It starts once Run runs, and its context ends when Run's does or when the
// task is stopped.
func (g *Group) Go(work func(context.Context)) *Task {
	task := &Task{work: work, quit: make(chan struct{}), done: make(chan struct{})}
	g.mu.Lock()
	g.pending = append(g.pending, task)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	return task
}

// Run starts all tasks that were added, and those that are added later, until ctx ends. It returns
// when all of them have.
func (g *Group) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		for _, task := range g.take() {
			running.Go(func() { task.run(ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		}
	}
}

func (g *Group) take() []*Task {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.pending
	g.pending = nil
	return out
}

// Stop ends the task's context. It may be called more than once and does not
// wait; Done does.
func (t *Task) Stop() {
	t.once.Do(func() { close(t.quit) })
}

// Done is closed when the function has returned.
func (t *Task) Done() <-chan struct{} { return t.done }

func (t *Task) run(ctx context.Context) {
	defer close(t.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-t.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	t.work(ctx)
}
