package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/echo"
)

// Recorder takes Events.
type Recorder interface {
	Event(obj runtime.Object, eventType, reason, message string)
}

// Options tune the loop. The zero value is the default.
type Options struct {
	// Workers is how many bindings are decided at the same time; zero means 4.
	Workers int
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Bounds of the pause between two tries to place a binding for which there was
// no room.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Reconciler places bindings. Requests without a namespace are about
// cluster-scoped ones. Use New.
type Reconciler struct {
	hub       client.Client
	decider   *Decider
	snapshots *Snapshots
	events    Recorder
	opts      Options
	echo      *echo.Echo[workv1alpha2.Binding]
	pauses    workqueue.TypedRateLimiter[reconcile.Request]
}

// New returns the loop. hub reads from a cache.
func New(hub client.Client, decider *Decider, events Recorder, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Workers == 0 {
		opts.Workers = 4
	}
	return &Reconciler{
		hub:       hub,
		decider:   decider,
		snapshots: decider.snapshots,
		events:    events,
		opts:      opts,
		echo:      echo.New[workv1alpha2.Binding](opts.Clock),
		pauses:    workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile places one binding, if that is due.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cached, found, err := bindings.Get(ctx, r.hub, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	b, found := r.echo.Latest(req.NamespacedName, cached, found)
	if !found {
		r.pauses.Forget(req)
		return ctrl.Result{}, nil
	}
	decision, changed, err := r.decider.Decide(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	if changed {
		if err := r.write(ctx, b, decision); err != nil {
			return ctrl.Result{}, err
		}
	}
	if decision.Record.Reason != "" && decision.Record.Retries() {
		return ctrl.Result{RequeueAfter: r.pauses.When(req)}, nil
	}
	r.pauses.Forget(req)
	return ctrl.Result{}, nil
}

// write puts decision on b. Where b has changed meanwhile nothing is written:
// its next event brings it back here.
func (r *Reconciler) write(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) error {
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	decision.Put(desired)
	patch, some, err := bindings.Patch(b, desired)
	if err != nil || !some {
		return err
	}
	if err := r.hub.Patch(ctx, desired, patch); err != nil {
		if bindings.IsStale(err) {
			return nil
		}
		return fmt.Errorf("write the placement of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	r.echo.Wrote(desired)
	log.FromContext(ctx).Info("placed", "clusters", placement.Text(decision.Clusters), "reason", decision.Record.Reason, "why", decision.Why)
	if e, some := EventOf(b, decision); some {
		r.events.Event(TemplateRef(b), e.Type, e.Reason, e.Message)
	}
	return nil
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
