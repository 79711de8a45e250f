package scheduler

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
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
	// NoPriority looks at bindings in the order of their events, whatever
	// priority they have.
	NoPriority bool
	// DateEachTrial dates the record of a decision anew each time that a change of a
	// binding, or of a cluster, led to the same one.
	DateEachTrial bool
	// EvictionRate is how many bindings are moved off failed clusters in a second; zero is
	// as many as there are, a negative one is one in half an hour.
	EvictionRate float64
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Bounds of the pause between two tries to place a binding that nothing has
// woken meanwhile: where capacity was lacking, and where something went wrong.
const (
	firstRetry        = time.Second
	lastCapacityRetry = time.Minute
	lastRetry         = 10 * time.Second
)

// Reconciler places bindings. Requests without a namespace are about
// cluster-scoped ones. Use New.
type Reconciler struct {
	hub      client.Client
	decider  *decider.Decider
	events   loop.Recorder
	opts     Options
	writer   writer
	wakes    wakes
	pace     pace
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
	return &Reconciler{
		hub:      hub,
		decider:  decider,
		events:   events,
		opts:     opts,
		writer:   writer{hub: hub, clock: opts.Clock, written: written},
		wakes:    wakes{hub: hub, decider: decider, opts: opts, written: written},
		pace:     newPace(opts.EvictionRate, opts.Clock),
		capacity: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastCapacityRetry),
		faults:   workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile places one binding, if that is due.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cached, found, err := bindings.Get(ctx, r.hub, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	b, found := r.writer.written.Latest(req.NamespacedName, cached, found)
	if !found {
		r.forget(req)
		return ctrl.Result{}, nil
	}
	mark := r.decider.Unschedulable().Mark()
	trial := r.wakes.trials.take(req)
	decision, changed, err := r.decider.Decide(ctx, b)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !changed && trial && decision.Record.Succeeded():
		err = r.writer.date(ctx, b, decision)
	case changed:
		if wait := r.pace.wait(req, decision); wait > 0 {
			r.decider.Withdraw(b)
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		b, decision, err = r.place(ctx, b, decision)
	case decision.Record.Reason == "":
		err = r.leave(ctx, b)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	next := r.next(req, b, decision.Record, mark)
	if at := decision.Next; !at.IsZero() {
		if in := max(at.Sub(r.opts.Clock.Now()), time.Millisecond); next.RequeueAfter == 0 || in < next.RequeueAfter {
			next.RequeueAfter = in
		}
	}
	return next, nil
}

// next says when to look at b again, about which record was decided; mark is
// from before the decision. A cluster that comes or changes, an edit of b and,
// for those that wait, capacity and peers bring it back at once.
func (r *Reconciler) next(req reconcile.Request, b workv1alpha2.Binding, record placement.Record, mark uint64) ctrl.Result {
	if record.LacksRoom() {
		r.decider.Unschedulable().Add(b, workv1alpha2.BindingReasonUnschedulable, mark)
		return ctrl.Result{RequeueAfter: r.capacity.When(req)}
	}
	switch record.Reason {
	case "", workv1alpha2.BindingReasonSuccess:
		if record.Stays != nil { // in a cluster that it is to leave, until there is room in another
			r.decider.Unschedulable().Add(b, workv1alpha2.BindingReasonUnschedulable, mark)
			return ctrl.Result{RequeueAfter: r.capacity.When(req)}
		}
		r.forget(req)
		return ctrl.Result{}
	case workv1alpha2.BindingReasonNoClusterFit:
		r.capacity.Forget(req)
		r.faults.Forget(req)
		if !r.decider.Unschedulable().Add(b, record.Reason, mark) {
			return ctrl.Result{RequeueAfter: firstRetry}
		}
		return ctrl.Result{}
	case workv1alpha2.BindingReasonSchedulerError:
		r.decider.Unschedulable().Add(b, record.Reason, mark)
		return ctrl.Result{RequeueAfter: r.faults.When(req)}
	default:
		r.decider.Unschedulable().Add(b, record.Reason, mark)
		return ctrl.Result{RequeueAfter: r.capacity.When(req)}
	}
}

// forget ends all waiting of a binding.
func (r *Reconciler) forget(req reconcile.Request) {
	r.decider.Unschedulable().Forget(req.NamespacedName)
	r.capacity.Forget(req)
	r.faults.Forget(req)
	r.pace.forget(req)
}

// place writes decision, or what stands for it where the server refuses it, and
// returns the binding and the decision as they are then. Where b has changed
// meanwhile nothing is written: its next event brings it back here.
func (r *Reconciler) place(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) (workv1alpha2.Binding, placement.Decision, error) {
	written, err := r.writer.put(ctx, b, decision)
	if err != nil {
		r.decider.Withdraw(b)
	}
	if reason, message, refused := bindings.RefusalOf(err); refused {
		var changed bool
		if decision, changed = placement.Refused(b, reason, message, r.opts.Clock.Now()); !changed {
			return b, decision, nil
		}
		written, err = r.writer.put(ctx, b, decision)
	}
	switch {
	case err != nil && bindings.IsStale(err):
		return b, placement.Decision{}, nil
	case err != nil:
		return b, decision, fmt.Errorf("write the placement of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	log.FromContext(ctx).Info("placed", "clusters", placement.Text(decision.Clusters), "reason", decision.Record.Reason, "why", decision.Why)
	for _, eventOf := range []func(workv1alpha2.Binding, placement.Decision) (decider.Event, bool){decider.EventOf, decider.EvictionEventOf} {
		if e, some := eventOf(b, decision); some {
			r.events.Event(bindings.TemplateRef(b), e.Type, e.Reason, e.Message)
		}
	}
	return written, decision, nil
}

// leave takes b, about which there is nothing to decide, off clusters that are
// leaving: nobody else does.
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
