package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
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
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Bounds of the pause between two tries to place a binding that nothing has
// woken meanwhile: where room was lacking, and where something went wrong.
const (
	firstRetry    = time.Second
	lastRoomRetry = time.Minute
	lastRetry     = 10 * time.Second
)

// Reconciler places bindings. Requests without a namespace are about
// cluster-scoped ones. Use New.
type Reconciler struct {
	hub     client.Client
	decider *Decider
	events  loop.Recorder
	opts    Options
	written *writecache.Cache[workv1alpha2.Binding]
	woken   loop.Inbox[reconcile.Request]
	trials  trials
	room    workqueue.TypedRateLimiter[reconcile.Request]
	faults  workqueue.TypedRateLimiter[reconcile.Request]
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, decider *Decider, events loop.Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers == 0 {
		opts.Workers = 16
	}
	return &Reconciler{
		hub:     hub,
		decider: decider,
		events:  events,
		opts:    opts,
		written: writecache.New[workv1alpha2.Binding](opts.Clock),
		room:    workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRoomRetry),
		faults:  workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile places one binding, if that is due.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cached, found, err := bindings.Get(ctx, r.hub, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	b, found := r.written.Latest(req.NamespacedName, cached, found)
	if !found {
		r.forget(req)
		return ctrl.Result{}, nil
	}
	mark := r.decider.unschedulable.begin()
	trial := r.trials.take(req)
	decision, changed, err := r.decider.Decide(ctx, b)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !changed && trial && decision.Record.Succeeded():
		err = r.date(ctx, b, decision)
	case changed:
		b, decision, err = r.place(ctx, b, decision)
	case decision.Record.Reason == "":
		err = r.leave(ctx, b)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.next(req, b, decision.Record, mark), nil
}

// next says when to look at b again, about which record was decided; mark is
// from before the decision. A cluster that comes or changes, an edit of b and,
// for those that wait, room and peers bring it back at once.
func (r *Reconciler) next(req reconcile.Request, b workv1alpha2.Binding, record placement.Record, mark uint64) ctrl.Result {
	switch record.Reason {
	case "", workv1alpha2.BindingReasonSuccess:
		r.forget(req)
		return ctrl.Result{}
	case workv1alpha2.BindingReasonNoClusterFit:
		r.room.Forget(req)
		r.faults.Forget(req)
		if !r.decider.unschedulable.hold(b, record.Reason, mark) {
			return ctrl.Result{RequeueAfter: firstRetry}
		}
		return ctrl.Result{}
	case workv1alpha2.BindingReasonSchedulerError:
		r.decider.unschedulable.hold(b, record.Reason, mark)
		return ctrl.Result{RequeueAfter: r.faults.When(req)}
	default:
		r.decider.unschedulable.hold(b, record.Reason, mark)
		return ctrl.Result{RequeueAfter: r.room.When(req)}
	}
}

// forget ends all waiting of a binding.
func (r *Reconciler) forget(req reconcile.Request) {
	r.decider.unschedulable.forget(req.NamespacedName)
	r.room.Forget(req)
	r.faults.Forget(req)
}

// place writes decision, or what stands for it where the server refuses it, and
// returns the binding and the decision as they are then. Where b has changed
// meanwhile nothing is written: its next event brings it back here.
func (r *Reconciler) place(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) (workv1alpha2.Binding, placement.Decision, error) {
	written, err := r.put(ctx, b, decision)
	if err != nil {
		r.decider.Withdraw(b)
	}
	if reason, message, refused := RefusalOf(err); refused {
		var news bool
		if decision, news = placement.Refused(b, reason, message, r.opts.Clock.Now()); !news {
			return b, decision, nil
		}
		written, err = r.put(ctx, b, decision)
	}
	switch {
	case err != nil && bindings.IsStale(err):
		return b, placement.Decision{}, nil
	case err != nil:
		return b, decision, fmt.Errorf("write the placement of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	log.FromContext(ctx).Info("placed", "clusters", placement.Text(decision.Clusters), "reason", decision.Record.Reason, "why", decision.Why)
	if e, some := EventOf(b, decision); some {
		r.events.Event(TemplateRef(b), e.Type, e.Reason, e.Message)
	}
	return written, decision, nil
}

// put writes decision on b and returns what b is then.
func (r *Reconciler) put(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) (workv1alpha2.Binding, error) {
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	decision.Put(desired)
	return desired, r.write(ctx, b, desired)
}

// leave takes b, about which there is nothing to decide, off clusters that are
// leaving: nobody else does.
func (r *Reconciler) leave(ctx context.Context, b workv1alpha2.Binding) error {
	clusters, err := r.decider.snapshots.Current(ctx)
	if err != nil {
		return err
	}
	targets, some := placement.Remaining(b, *clusters, r.decider.opts.Placement.SchedulerName)
	if !some {
		return nil
	}
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	desired.BindingSpec().Clusters = targets
	if err := r.write(ctx, b, desired); err != nil {
		if bindings.IsStale(err) {
			return nil
		}
		return fmt.Errorf("take %s off clusters that leave: %w", client.ObjectKeyFromObject(b), err)
	}
	log.FromContext(ctx).Info("taken off clusters that leave", "clusters", placement.Text(targets))
	return nil
}

func (r *Reconciler) write(ctx context.Context, b, desired workv1alpha2.Binding) error {
	patch, some, err := bindings.Patch(b, desired)
	if err != nil || !some {
		return err
	}
	if err := r.hub.Patch(ctx, desired, patch); err != nil {
		return err
	}
	r.written.Wrote(desired)
	return nil
}

// RefusalOf returns the reason and the message for users where err is the
// server's considered no to a placement: a quota, or a rule of admission.
func RefusalOf(err error) (reason, message string, refused bool) {
	var status apierrors.APIStatus
	switch {
	case err == nil || bindings.IsStale(err) || !errors.As(err, &status):
		return "", "", false
	case apierrors.ReasonForError(err) == workv1alpha2.BindingReasonQuotaExceeded:
		return workv1alpha2.BindingReasonQuotaExceeded, status.Status().Message, true
	case bindings.IsRefused(err):
		return workv1alpha2.BindingReasonSchedulerError, status.Status().Message, true
	default:
		return "", "", false
	}
}

// Event is what is told about a template.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is CamelCase and stable.
	Reason string
	// Message for users.
	Message string
}

// EventOf returns the Event that decision is worth, given what b said before.
// Only a first placement, a new failure and its end are told.
func EventOf(before workv1alpha2.Binding, decision placement.Decision) (Event, bool) {
	was, decided := placement.RecordOf(before)
	if !decision.Record.Succeeded() {
		news := !decided || was.Reason != decision.Record.Reason
		return Event{corev1.EventTypeWarning, workv1alpha2.EventReasonScheduleBindingFailed, decision.Record.Message}, news
	}
	if !decided {
		// Placed by a scheduler that keeps no record.
		decided = before.GetAnnotations()[policyv1alpha1.PolicyPlacementAnnotation] != ""
		was.Reason = workv1alpha2.BindingReasonSuccess
	}
	message := decision.Record.Message + " Result: " + placement.Text(decision.Clusters)
	return Event{corev1.EventTypeNormal, workv1alpha2.EventReasonScheduleBindingSucceed, message}, !decided || !was.Succeeded()
}

// TemplateRef refers to the template of b, so that Events show up there.
func TemplateRef(b workv1alpha2.Binding) *corev1.ObjectReference {
	ref := b.BindingSpec().Resource
	return &corev1.ObjectReference{
		APIVersion: ref.APIVersion,
		Kind:       ref.Kind,
		Namespace:  ref.Namespace,
		Name:       ref.Name,
		UID:        ref.UID,
	}
}
