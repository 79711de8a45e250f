package ocirepository

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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/internal/runs"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/cloudlogin"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// Options configure a Reconciler. Zero fields take the default.
type Options struct {
	// Workers is how many sources are reconciled at a time, and at most one fewer of one namespace. Default 5, at least 2.
	Workers int
	// Clock returns the time of artifacts and conditions. Default: the system's.
	Clock clock.PassiveClock
	// Registries configures access to registries; spec.timeout replaces its Timeout.
	Registries oci.Options
	// Clouds has logins of clouds asked for with the credentials of Secrets. See package clouds.
	Clouds bool
	// Limits bound an artifact.
	Limits artifact.Limits
	// Namespaces returns the limits of a namespace; nil means no limits.
	Namespaces func(namespace string) tenancy.Limits
	// InUse returns a source's artifacts that are still used, and so are kept in addition to the latest one; nil means none.
	InUse func(ctx context.Context, source client.ObjectKey) ([]artifact.Used, error)
	// Places limits concurrent work across tenants and is shared with the other loops; if it is nil, this loop has its own.
	Places *places.Places
	// Metrics is where the loop's metrics are registered; it may be nil.
	Metrics prometheus.Registerer
	// Clean returns an error without what may not be told of an object, for the log; nil returns it as it is.
	Clean func(of client.Object, err error) error
	// Jitter varies intervals, so that sources created at the same time are not read at the same time. Default plus or minus
	// 5 %.
	Jitter func(time.Duration) time.Duration
}

const (
	defaultWorkers = 5
	defaultTimeout = 60 * time.Second
)

// Reconciler keeps artifacts of OCIRepositories up to date.
type Reconciler struct {
	hub      client.Client
	store    *artifact.Store
	events   fetching.Recorder
	opts     Options
	runs     *runs.Runs
	counts   fetching.Counts
	limits   fetching.Limiter
	restorer *fetching.Restorer
	secrets  reader
	remotes  remotes
	clouds   clouds
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
	if opts.Clean == nil {
		opts.Clean = func(_ client.Object, err error) error { return err }
	}
	if opts.Places == nil {
		opts.Places = places.New(places.Options{})
	}
	if opts.InUse == nil {
		opts.InUse = func(context.Context, client.ObjectKey) ([]artifact.Used, error) { return nil, nil }
	}
	if opts.Jitter == nil {
		opts.Jitter = fetching.Jitter
	}
	opts.Registries.Clock = opts.Clock
	return &Reconciler{
		hub: hub, store: store, events: events, opts: opts, runs: runs.New(),
		counts:   fetching.NewCounts(opts.Metrics, opts.Clock, sourcev1.OCIRepositoryKind),
		limits:   fetching.Limiter{Hub: hub, Store: store, Of: opts.Namespaces},
		secrets:  reader{hub, opts.Registries.Egress},
		clouds:   clouds{opts.Clouds, cloudlogin.New(opts.Registries.Egress, opts.Clock)},
		restorer: &fetching.Restorer{Store: store, Clock: opts.Clock},
	}
}

// Register adds the loop to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	sweep := func(ctx context.Context) error {
		fetching.Sweep(ctx, r.hub, r.store, sourcev1.OCIRepositoryKind, func() client.Object { return &sourcev1.OCIRepository{} })
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(sweep)); err != nil {
		return fmt.Errorf("register OCIRepository loop: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("ocirepository").
		For(&sourcev1.OCIRepository{}, builder.WithPredicates(r.runs.Predicate(), fetching.Asked(gitopsv1alpha1.RollbackProtectionAnnotation))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Workers,
			NewQueue:                fairqueue.ByNamespace(r.opts.Workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](fetching.FirstRetry, fetching.LastRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register OCIRepository loop: %w", err)
	}
	return nil
}

func ownerOf(key client.ObjectKey) string {
	return artifact.Owner(sourcev1.OCIRepositoryKind, key.Namespace, key.Name)
}

// Reconcile brings the artifact of one source up to date.
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
	var object sourcev1.OCIRepository
	err := r.hub.Get(ctx, req.NamespacedName, &object)
	if apierrors.IsNotFound(err) {
		r.remotes.forget(req.NamespacedName)
		return reconcile.Result{}, r.store.Release(ownerOf(req.NamespacedName))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read OCIRepository: %w", err)
	}
	run.WorksOn(&object)
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, fetching.LetGo(ctx, r.hub, &object, sourcev1.SourceFinalizer)
	}
	if object.Spec.Suspend {
		return reconcile.Result{}, nil
	}
	s := &state{object: &object, key: req.NamespacedName, interval: max(object.Spec.Interval.Duration, fetching.MinInterval)}
	fetched := r.counts.Fetch.Begin()
	next, err := loop.Run(ctx, s, r.clouds.refuse, r.limit, r.secrets.trust, r.connect, r.resolve, verify, r.follow, r.use, r.fetch)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err() // stopping or superseded; neither is about the source
	}
	r.clouds.doubt(s, err)
	fetched(s.outcome(), err)
	if reportErr := r.report(ctx, s, err); reportErr != nil {
		return reconcile.Result{}, reportErr
	}
	if err == nil { // after the report, so that a new artifact does not wait for old ones
		r.restorer.Restore(ctx, ownerOf(s.key), s.inUse, func(ctx context.Context, used artifact.Used) error { return r.restore(ctx, s, used) })
	}
	next.After = r.opts.Jitter(s.interval)
	return result(next, r.opts.Clean(s.object, err))
}

// result returns when to look again.
func result(next loop.Next, err error) (reconcile.Result, error) {
	var busy *oci.BusyError
	switch {
	case errors.As(err, &busy) && busy.After > 0:
		return reconcile.Result{RequeueAfter: max(busy.After, next.After)}, nil // as the registry asks for
	case errors.Is(err, egress.ErrNotAllowed):
		// A person has to act, but this is tried again at least every LastRetry: the name may resolve to another address by
		// then, without a change of the object.
		return reconcile.Result{RequeueAfter: min(next.After, fetching.LastRetry)}, nil
	default:
		return loop.Result(next, err)
	}
}
