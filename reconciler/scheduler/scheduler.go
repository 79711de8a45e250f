package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value is the default.
type Options struct {
	// Workers is how many bindings are decided and written at the same time; zero
	// means 16.
	Workers int
	// NoPriority reconciles bindings in the order of their events and ignores
	// their priority.
	NoPriority bool
	// DateEachTrial writes a new time into the record of a decision each time that a change of a
	// binding, or of a cluster, leads to the same decision.
	DateEachTrial bool
	// EvictionRate is how many bindings are moved off failed clusters per second; zero means
	// no limit, a negative one means one per half hour. While many of those that
	// were moved do not become healthy, fewer are moved.
	EvictionRate float64
	// Judging says for how long those that were moved are followed.
	Judging failover.Judging
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Bounds of the pause between two tries to place a binding, if no event causes one
// earlier: the last two are for lack of capacity, and for errors.
const (
	firstRetry        = time.Second
	lastCapacityRetry = time.Minute
	lastRetry         = 10 * time.Second
)

// Reconciler places bindings. A request without a namespace names a
// ClusterResourceBinding. Use New.
type Reconciler struct {
	hub      client.Client
	decider  *decider.Decider
	events   loop.Recorder
	opts     Options
	writer   writer
	wakes    wakes
	rate     *rateLimiter
	moves    *recentMoves
	counts   counts
	capacity workqueue.TypedRateLimiter[reconcile.Request]
	faults   workqueue.TypedRateLimiter[reconcile.Request]
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, decider *decider.Decider, events loop.Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers == 0 {
		opts.Workers = 16
	}
	written := writecache.New[workv1alpha2.Binding](opts.Clock)
	moved := &recentMoves{by: opts.Judging}
	r := &Reconciler{
		hub:      hub,
		decider:  decider,
		events:   events,
		opts:     opts,
		writer:   writer{hub: hub, clock: opts.Clock, written: written},
		wakes:    wakes{hub: hub, decider: decider, opts: opts, written: written, moved: moved},
		rate:     newRateLimiter(opts.EvictionRate, opts.Clock),
		moves:    moved,
		capacity: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastCapacityRetry),
		faults:   workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
	r.rate.wake = r.wakes.sooner
	r.rate.outcomes = func(ctx context.Context) failover.Outcomes { return r.moves.outcomes(ctx, hub, opts.Clock.Now()) }
	return r
}

// state is what the phases pass on.
type state struct {
	req reconcile.Request
	// binding is as it is now, this loop's own writes included.
	binding workv1alpha2.Binding
	// began and cycle are the time, and the cycle of the unschedulable queue, from before the decision: what changes while
	// it is made is not missed.
	began time.Time
	cycle uint64
	// requested is true if a change of the binding, or of a cluster, asked for a decision.
	requested bool
	// decision is the placement, and changed whether it differs from the one that the binding has.
	decision placement.Decision
	changed  bool
}

// Reconcile places one binding, if that is due.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return loop.Result(loop.Run(ctx, &state{req: req}, r.read, r.decide, r.limit, r.write, r.requeue))
}

// read reads the binding.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	cached, found, err := bindings.Get(ctx, r.hub, s.req.NamespacedName)
	if err != nil {
		return loop.Next{}, err
	}
	if s.binding, found = r.writer.written.Latest(s.req.NamespacedName, cached, found); !found {
		r.forget(s.req)
	}
	return loop.Next{Done: !found}, nil
}

// decide decides where the binding runs.
func (r *Reconciler) decide(ctx context.Context, s *state) (loop.Next, error) {
	s.cycle, s.began = r.decider.Unschedulable().Cycle(), r.opts.Clock.Now()
	s.requested = r.wakes.requested.take(s.req)
	var err error
	s.decision, s.changed, err = r.decider.Decide(ctx, s.binding)
	return loop.Next{}, err
}

// limit delays a move for which it is not the binding's turn: what a failed cluster ran is moved off it in portions.
func (r *Reconciler) limit(ctx context.Context, s *state) (loop.Next, error) {
	if !s.changed {
		return loop.Next{}, nil
	}
	wait := r.rate.wait(ctx, s.req, s.binding.BindingSpec().Resource.Kind, s.decision)
	if wait <= 0 {
		return loop.Next{}, nil
	}
	r.decider.Withdraw(s.binding)
	r.slowed(ctx, s.decision)
	return loop.Next{Done: true, After: wait}, nil
}

// write writes what was decided, if the binding does not have it.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	switch {
	case s.changed:
		leaves := len(s.decision.Evicts) > 0
		s.binding, s.decision, err = r.place(ctx, s.binding, s.decision)
		if leaves && (err != nil || len(s.decision.Evicts) > 0) { // place returns no decision if the binding was stale
			r.counts.evicted(r.opts.Clock.Since(s.began), err)
		}
	case s.requested && s.decision.Record.Succeeded():
		err = r.writer.date(ctx, s.binding, s.decision)
	case s.decision.Record.Reason == "":
		err = r.leave(ctx, s.binding)
	}
	return loop.Next{}, err
}

// requeue decides when to reconcile the binding again: after a pause, by next, or when the decision may be another one.
func (r *Reconciler) requeue(_ context.Context, s *state) (loop.Next, error) {
	after := r.next(s.req, s.binding, s.decision.Record, s.cycle)
	if at := s.decision.Next; !at.IsZero() {
		if in := max(at.Sub(r.opts.Clock.Now()), time.Millisecond); after == 0 || in < after {
			after = in
		}
	}
	return loop.Next{After: after}, nil
}

// next returns after which pause to reconcile b again after the decision in record; zero for none. cycle is
// that of the unschedulable queue from before the decision: if something has changed
// since, the queue does not keep b. Events of clusters and of b itself enqueue b at once,
// and, while it is unschedulable, so do capacity and peers.
func (r *Reconciler) next(req reconcile.Request, b workv1alpha2.Binding, record placement.Record, cycle uint64) time.Duration {
	if record.LacksCapacity() {
		r.decider.Unschedulable().Add(b, workv1alpha2.BindingReasonUnschedulable, cycle)
		return r.capacity.When(req)
	}
	switch record.Reason {
	case "", workv1alpha2.BindingReasonSuccess:
		if record.Stays != nil { // in a cluster that it has to leave, until another one has capacity
			r.decider.Unschedulable().Add(b, workv1alpha2.BindingReasonUnschedulable, cycle)
			return r.capacity.When(req)
		}
		r.forget(req)
		return 0
	case workv1alpha2.BindingReasonNoClusterFit:
		r.capacity.Forget(req)
		r.faults.Forget(req)
		if !r.decider.Unschedulable().Add(b, record.Reason, cycle) {
			return firstRetry
		}
		return 0
	case workv1alpha2.BindingReasonSchedulerError:
		r.decider.Unschedulable().Add(b, record.Reason, cycle)
		return r.faults.When(req)
	default:
		r.decider.Unschedulable().Add(b, record.Reason, cycle)
		return r.capacity.When(req)
	}
}

// forget drops all that waits for a binding: its place in queues, and its back-offs.
func (r *Reconciler) forget(req reconcile.Request) {
	r.decider.Unschedulable().Forget(req.NamespacedName)
	r.capacity.Forget(req)
	r.faults.Forget(req)
	r.rate.forget(req)
}

// place writes the decision, or a substitute if the server refuses it, and
// returns the binding and the decision as they are then. If b has changed
// meanwhile it writes nothing: the event of the change enqueues b again.
func (r *Reconciler) place(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) (workv1alpha2.Binding, placement.Decision, error) {
	written, err := r.writer.put(ctx, b, decision)
	if err != nil {
		r.decider.Withdraw(b)
	}
	if reason, _, _ := bindings.RefusalOf(err); reason == workv1alpha2.BindingReasonQuotaExceeded && len(decision.Evicts) > 0 {
		written, decision, err = r.moveAsItRuns(ctx, b, decision, err)
	}
	if reason, message, refused := bindings.RefusalOf(err); refused {
		var changed bool
		if written, decision, changed, err = r.refused(ctx, b, decision, reason, message); !changed {
			return b, decision, err
		}
	}
	switch {
	case err != nil && bindings.IsStale(err):
		return b, placement.Decision{}, nil
	case err != nil:
		return b, decision, fmt.Errorf("write the placement of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	r.moves.add(b, decision, r.opts.Clock.Now())
	log.FromContext(ctx).Info("placed", "clusters", placement.Text(decision.Clusters), "reason", decision.Record.Reason, "why", decision.Why)
	for _, e := range decider.EventsOf(b, decision) {
		e.Emit(r.events, bindings.TemplateRef(b), b)
	}
	return written, decision, nil
}

// moveAsItRuns moves no more of b than runs, where a quota refuses the move with all that it asks for: the next decision is about the
// rest. It returns the decision that was refused, and why, where it asks for no more than runs, or that is refused as well.
func (r *Reconciler) moveAsItRuns(ctx context.Context, b workv1alpha2.Binding, refused placement.Decision, why error) (workv1alpha2.Binding, placement.Decision, error) {
	less, is := placement.AsItRuns(b)
	if !is {
		return b, refused, why
	}
	decision, changed, err := r.decider.Decide(ctx, less)
	if err != nil || !changed || len(decision.Evicts) == 0 {
		r.decider.Withdraw(b)
		return b, refused, why
	}
	written, err := r.writer.put(ctx, b, decision)
	if err != nil {
		r.decider.Withdraw(b)
	}
	if _, _, again := bindings.RefusalOf(err); again {
		return b, refused, why
	}
	return written, decision, err
}

// refused writes the substitute for a decision that the server refuses, and reports whether there
// was anything to write. It tries first to remove clusters that leave, and, if the server refuses that as well, to
// write the reason alone.
func (r *Reconciler) refused(ctx context.Context, b workv1alpha2.Binding, refused placement.Decision, reason, message string) (written workv1alpha2.Binding, decision placement.Decision, changed bool, err error) {
	clusters, err := r.decider.Clusters(ctx)
	if err != nil {
		return b, placement.Decision{}, false, err
	}
	for _, known := range []placement.Snapshot{*clusters, {}} {
		if decision, changed = placement.Refused(b, refused, known, reason, message, r.opts.Clock.Now()); !changed {
			return b, decision, false, nil
		}
		written, err = r.writer.put(ctx, b, decision)
		if _, _, again := bindings.RefusalOf(err); !again {
			break
		}
	}
	return written, decision, true, err
}

// slowed emits an event for clusters that are evicted below the configured rate, once for each change of the rate.
func (r *Reconciler) slowed(ctx context.Context, decision placement.Decision) {
	clusters, why := r.rate.unreported(decision.Evicts)
	for _, name := range clusters {
		c := &clusterv1alpha1.Cluster{}
		if err := r.hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			continue // it has left, or cannot be read: an event is not worth an error
		}
		log.FromContext(ctx).Info("moves less at once", "cluster", name, "why", why)
		r.events.Event(c, corev1.EventTypeWarning, clusterv1alpha1.EventReasonEvictionSlowed, why)
	}
}

// leave removes clusters that are leaving from b, about which there is nothing else to
// decide: no other loop does that.
func (r *Reconciler) leave(ctx context.Context, b workv1alpha2.Binding) error {
	targets, some, err := r.decider.Remaining(ctx, b)
	if err != nil {
		return err
	}
	if !some {
		return nil
	}
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	desired.BindingSpec().Clusters = targets
	if err := r.writer.write(ctx, b, desired); err != nil {
		if bindings.IsStale(err) {
			return nil
		}
		return fmt.Errorf("take %s off clusters that leave: %w", client.ObjectKeyFromObject(b), err)
	}
	log.FromContext(ctx).Info("taken off clusters that leave", "clusters", placement.Text(targets))
	return nil
}
