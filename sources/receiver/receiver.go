package receiver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
)

// Options configure a Reconciler. Zero fields take the default.
type Options struct {
	// Address is where requests come in, such as ":9292". Without one, Receivers say that nobody listens.
	Address string
	// Egress reaches the issuers of tokens.
	Egress egress.Dialer
	// AllowCrossNamespace lets a Receiver name objects of other namespaces.
	AllowCrossNamespace bool
	// Clock is the time. Default: the system's.
	Clock clock.WithDelayedExecution
	// Metrics is where metrics are registered; it may be nil.
	Metrics prometheus.Registerer
}

// Back-off after transient faults, and the pause before a missing Secret is looked up again.
const (
	firstRetry, lastRetry = time.Second, 5 * time.Minute
	awaited               = 5 * time.Second
	minInterval           = time.Second
	workers               = 2
)

// Reconciler keeps the addresses of Receivers.
type Reconciler struct {
	hub    client.Client
	opts   Options
	lines  *expression.Compiler
	hooks  *hooks
	server *server
}

// New returns a Reconciler.
func New(hub client.Client, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	r := &Reconciler{hub: hub, opts: opts, lines: expression.NewCompiler(expression.Limits{}), hooks: newHooks(opts.Clock)}
	r.server = newServer(hub, r.hooks, opts)
	return r
}

// Register adds the loop, and the server if there is a listener, to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	if r.opts.Address != "" {
		if err := mgr.Add(manager.RunnableFunc(r.server.run)); err != nil {
			return fmt.Errorf("register the server of Receivers: %w", err)
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("receiver").
		For(&notificationv1.Receiver{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, requested{}))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			NewQueue:                fairqueue.ByNamespace(workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register Receiver loop: %w", err)
	}
	return nil
}

// Handler answers the requests of senders.
func (r *Reconciler) Handler() http.Handler { return r.server }

// requested passes updates that request a reconcile.
type requested struct{ predicate.Funcs }

// Update reports whether the annotation has a new request.
func (requested) Update(e event.UpdateEvent) bool {
	return e.ObjectOld.GetAnnotations()[meta.ReconcileRequestAnnotation] != e.ObjectNew.GetAnnotations()[meta.ReconcileRequestAnnotation]
}

// Reconcile brings one Receiver's address up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var object notificationv1.Receiver
	err := r.hub.Get(ctx, req.NamespacedName, &object)
	if apierrors.IsNotFound(err) {
		r.hooks.drop(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read Receiver: %w", err)
	}
	if !object.DeletionTimestamp.IsZero() {
		r.hooks.drop(req.NamespacedName)
		return reconcile.Result{}, r.letGo(ctx, &object)
	}
	if object.Spec.Suspend {
		r.hooks.drop(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	s := &state{object: &object}
	next, err := loop.Run(ctx, s, r.compile, r.authenticate, r.listen)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	if err == nil {
		r.hooks.put(s.path, s.hook())
	} else {
		r.hooks.drop(req.NamespacedName)
	}
	if err := r.report(ctx, s, err); err != nil {
		return reconcile.Result{}, err
	}
	next.After = max(object.GetInterval(), minInterval)
	return loop.Result(next, err)
}

// letGo removes the finalizer that Flux's notification-controller may have set.
func (r *Reconciler) letGo(ctx context.Context, object *notificationv1.Receiver) error {
	before := object.DeepCopy()
	if !controllerutil.RemoveFinalizer(object, notificationv1.NotificationFinalizer) {
		return nil
	}
	if err := r.hub.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove finalizer: %w", err))
	}
	return nil
}
