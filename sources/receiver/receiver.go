package receiver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// Options configure a Reconciler. Zero fields take the default.
type Options struct {
	// Address is where requests come in, such as ":9292". Without one, Receivers say that nobody listens.
	Address string
	// Egress reaches the issuers of tokens.
	Egress egress.Dialer
	// AllowCrossNamespace lets a Receiver name objects of other namespaces.
	AllowCrossNamespace bool
	// Clean returns an error without what may not be told of a Receiver, for the log and for senders; nil returns it as it is.
	Clean func(of client.Object, err error) error
	// Clock is the time. Default: the system's.
	Clock clock.WithDelayedExecution
	// Metrics is where metrics are registered; it may be nil.
	Metrics prometheus.Registerer
}

const (
	workers = 2
	// again is the time after which what does not exist is looked for again, as nothing else tells of it.
	again = time.Minute
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
	if opts.Clean == nil {
		opts.Clean = func(_ client.Object, err error) error { return err }
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
		For(&notificationv1.Receiver{}, builder.WithPredicates(fetching.Asked())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			NewQueue:                fairqueue.ByNamespace(workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](fetching.FirstRetry, fetching.LastRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register Receiver loop: %w", err)
	}
	return nil
}

// Handler answers the requests of senders.
func (r *Reconciler) Handler() http.Handler { return r.server }

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
		return reconcile.Result{}, fetching.LetGo(ctx, r.hub, &object, notificationv1.NotificationFinalizer)
	}
	if object.Spec.Suspend {
		r.hooks.drop(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	s := &state{object: &object}
	next, err := loop.Run(ctx, s, r.compile, r.reach, r.authenticate, r.listen, r.look, r.open)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	if err != nil {
		r.hooks.drop(req.NamespacedName)
	}
	if err := r.report(ctx, s, err); err != nil {
		return reconcile.Result{}, err
	}
	next.After = max(object.GetInterval(), fetching.MinInterval)
	if len(s.left.missing) > 0 {
		next.After = min(next.After, again)
	}
	return loop.Result(next, r.opts.Clean(s.object, err))
}
