package externalartifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/internal/runs"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/download"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// Options configure a Reconciler. Zero fields take the default.
type Options struct {
	// Workers is how many sources are reconciled at a time, and at most one fewer of one namespace. Default 5, at least 2.
	Workers int
	// Clock is for metrics. Default: the system's.
	Clock clock.PassiveClock
	// Downloads configures how artifacts are fetched.
	Downloads download.Options
	// Limits bound an artifact.
	Limits artifact.Limits
	// Namespaces returns the limits of a namespace; nil means no limits.
	Namespaces func(namespace string) tenancy.Limits
	// InUse returns a source's artifacts that are still used, and so are kept in addition to the latest one; nil means none.
	InUse func(ctx context.Context, source client.ObjectKey) ([]artifact.Used, error)
	// Places limits concurrent work across tenants and is shared with the other loops; if it is nil, this loop has its own.
	Places *places.Places
	// Clean returns an error without what may not be told of an object, for the log; nil returns it as it is.
	Clean func(of client.Object, err error) error
	// Metrics is where the loop's metrics are registered; it may be nil.
	Metrics prometheus.Registerer
	// Jitter varies intervals. Default plus or minus 5 %.
	Jitter func(time.Duration) time.Duration
}

const (
	defaultWorkers = 5
	// interval is how often it is looked whether the store still has an artifact, and a fault that may last is tried again.
	interval = 10 * time.Minute
)

// Reconciler keeps copies of the artifacts of ExternalArtifacts.
type Reconciler struct {
	hub    client.Client
	store  *artifact.Store
	events fetching.Recorder
	opts   Options
	runs   *runs.Runs
	counts fetching.Counts
	limits fetching.Limiter
	files  *download.Client
}

// New returns a Reconciler.
func New(hub client.Client, store *artifact.Store, events fetching.Recorder, opts Options) *Reconciler {
	if opts.Workers == 0 {
		opts.Workers = defaultWorkers
	}
	opts.Workers = fairqueue.Workers(opts.Workers)
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Places == nil {
		opts.Places = places.New(places.Options{})
	}
	if opts.Clean == nil {
		opts.Clean = func(_ client.Object, err error) error { return err }
	}
	if opts.InUse == nil {
		opts.InUse = func(context.Context, client.ObjectKey) ([]artifact.Used, error) { return nil, nil }
	}
	if opts.Jitter == nil {
		opts.Jitter = fetching.Jitter
	}
	return &Reconciler{
		hub: hub, store: store, events: events, opts: opts, runs: runs.New(), files: download.New(opts.Downloads),
		counts: fetching.NewCounts(opts.Metrics, opts.Clock, sourcev1.ExternalArtifactKind),
		limits: fetching.Limiter{Hub: hub, Store: store, Of: opts.Namespaces},
	}
}

// Register adds the loop to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	sweep := func(ctx context.Context) error {
		fetching.Sweep(ctx, r.hub, r.store, sourcev1.ExternalArtifactKind, func() client.Object { return &sourcev1.ExternalArtifact{} })
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(sweep)); err != nil {
		return fmt.Errorf("register ExternalArtifact loop: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("externalartifact").
		For(&sourcev1.ExternalArtifact{}, builder.WithPredicates(r.runs.Predicate(), predicate.Or[client.Object](fetching.Asked(), another()))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Workers,
			NewQueue:                fairqueue.ByNamespace(r.opts.Workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](fetching.FirstRetry, fetching.LastRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register ExternalArtifact loop: %w", err)
	}
	return nil
}

// another passes an object whose status names another artifact, or that has lost what this loop says of it.
func another() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*sourcev1.ExternalArtifact)
		after, okAfter := e.ObjectNew.(*sourcev1.ExternalArtifact)
		if !okBefore || !okAfter || after.Status.Artifact == nil {
			return false
		}
		was, is := before.Status.Artifact, after.Status.Artifact
		return was == nil || was.Digest != is.Digest || was.URL != is.URL || said(before) != "" && said(after) == ""
	}}
}

func ownerOf(key client.ObjectKey) string {
	return artifact.Owner(sourcev1.ExternalArtifactKind, key.Namespace, key.Name)
}

// Reconcile brings the copy of one artifact up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.counts.Reconciles.Begin(r.opts.Clock)()
	ctx, run := r.runs.Start(ctx, req.NamespacedName)
	defer run.End()
	ctx, end := r.opts.Places.Start(ctx, req.Namespace)
	defer end()
	result, err := r.reconcile(ctx, req, run)
	if err != nil && runs.Superseded(ctx) {
		return reconcile.Result{RequeueAfter: fetching.FirstRetry}, nil // the current object is reconciled instead
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req reconcile.Request, run *runs.Run) (reconcile.Result, error) {
	var object sourcev1.ExternalArtifact
	err := r.hub.Get(ctx, req.NamespacedName, &object)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.store.Release(ownerOf(req.NamespacedName))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read ExternalArtifact: %w", err)
	}
	run.WorksOn(&object)
	if !object.DeletionTimestamp.IsZero() || object.Status.Artifact == nil {
		return reconcile.Result{}, nil // the finalizers are not ours
	}
	s := &state{object: &object, key: req.NamespacedName}
	fetched := r.counts.Fetch.Begin()
	next, err := loop.Run(ctx, s, r.limit, r.find, r.use, r.fetch)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err() // stopping or superseded; neither is about the source
	}
	fetched(s.outcome(), err)
	if reportErr := r.report(ctx, s, err); reportErr != nil {
		return reconcile.Result{}, reportErr
	}
	next.After = r.opts.Jitter(interval)
	if errors.Is(err, egress.ErrNotAllowed) { // the name may resolve to another address by then
		return reconcile.Result{RequeueAfter: fetching.LastRetry}, nil
	}
	return loop.Result(next, r.opts.Clean(s.object, err))
}
