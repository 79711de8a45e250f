package runs

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ErrSuperseded is why a run has ended whose object changed.
var ErrSuperseded = errors.New("the object changed while it was worked on")

// Superseded reports whether a context ended because its run's object changed.
func Superseded(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrSuperseded)
}

// Runs are the runs of one loop. Use New.
type Runs struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]*Run
}

// New returns Runs without any.
func New() *Runs { return &Runs{byKey: map[client.ObjectKey]*Run{}} }

// Run is a run in progress. There is one at a time for each object.
type Run struct {
	all    *Runs
	key    client.ObjectKey
	cancel context.CancelCauseFunc

	// What is known of the object: what the run works on, once it has read it, and
	// what events have shown since the run began.
	works, seen version
}

// version is what a run depends on. The zero value is older than any.
type version struct {
	generation int64
	deleting   bool
}

func versionOf(obj client.Object) version {
	return version{obj.GetGeneration(), obj.GetDeletionTimestamp() != nil}
}

func (v version) newerThan(other version) bool {
	return v.generation > other.generation || v.deleting && !other.deleting
}

// Start begins a run, before its object is read. The context is to be used for all
// that the run does, and End to be called at its end.
func (r *Runs) Start(ctx context.Context, key client.ObjectKey) (context.Context, *Run) {
	ctx, cancel := context.WithCancelCause(ctx)
	run := &Run{all: r, key: key, cancel: cancel}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[key] = run
	return ctx, run
}

// WorksOn sets which version of the object the run has read.
func (r *Run) WorksOn(obj client.Object) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.works = versionOf(obj)
	if r.seen.newerThan(r.works) {
		r.cancel(ErrSuperseded)
	}
}

// End ends the run.
func (r *Run) End() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.all.byKey[r.key] == r {
		delete(r.all.byKey, r.key)
	}
	r.cancel(nil)
}

// Predicate sees the events of the loop's objects: it lets all of them pass, and
// ends runs. It belongs before others.
func (r *Runs) Predicate() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { r.changed(e.ObjectNew); return true },
		DeleteFunc: func(e event.DeleteEvent) bool { r.gone(client.ObjectKeyFromObject(e.Object)); return true },
	}
}

func (r *Runs) changed(obj client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.byKey[client.ObjectKeyFromObject(obj)]
	if run == nil {
		return
	}
	run.seen = versionOf(obj)
	if run.works != (version{}) && run.seen.newerThan(run.works) {
		run.cancel(ErrSuperseded)
	}
}

func (r *Runs) gone(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.byKey[key]; run != nil {
		run.cancel(ErrSuperseded)
	}
}
