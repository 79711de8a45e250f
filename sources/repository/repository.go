package repository

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
	"sigs.k8s.io/controller-runtime/pkg/handler"
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
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/objects"
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// Options configure a Reconciler. Zero fields take the default.
type Options struct {
	// Workers is how many repositories are reconciled at a time, and at most one
	// fewer of one namespace. Default 5, at least 2.
	Workers int
	// Clock returns the time of artifacts and conditions. Default: the system's.
	Clock clock.PassiveClock
	// Git configures access to remotes; spec.timeout replaces its Timeout.
	Git git.Options
	// Clouds has tokens of clouds asked for with the credentials of Secrets. See package clouds.
	Clouds bool
	// Limits bound an artifact.
	Limits artifact.Limits
	// Namespaces returns the limits of a namespace; nil means no limits.
	Namespaces func(namespace string) tenancy.Limits
	// InUse returns a repository's artifacts that are still used, and so are kept
	// in addition to the latest one; nil means none.
	InUse func(ctx context.Context, repository client.ObjectKey) ([]artifact.Used, error)
	// Places limits concurrent work across tenants and is shared with the other
	// loops; if it is nil, this loop has its own.
	Places *places.Places
	// Metrics is where the loop's metrics are registered; it may be nil.
	Metrics prometheus.Registerer
	// Clean returns an error without what may not be told of an object, for the log; nil returns it as it is.
	Clean func(of client.Object, err error) error
	// Jitter varies intervals, so that repositories created at the same time are
	// not read at the same time. Default plus or minus 5 %.
	Jitter func(time.Duration) time.Duration
}

const (
	defaultWorkers = 5
	defaultTimeout = 60 * time.Second
)

// Reconciler keeps artifacts of Git repositories up to date.
type Reconciler struct {
	hub    client.Client
	store  *artifact.Store
	events fetching.Recorder
	opts   Options
	runs   *runs.Runs
	wishes *wishes
	counts fetching.Counts
	users  users
	limits fetching.Limiter

	access    access
	verifier  verifier
	includes  includer
	collector collector
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
	if opts.Git.Kept == nil {
		folder, full := artifact.Beside(store, "git")
		opts.Git.Kept = git.NewKept(git.KeptOptions{Clock: opts.Clock, Objects: objects.New(objects.Options{Dir: folder, DiskFull: full, Clock: opts.Clock})})
	}
	includes := includer{hub, store}
	collector := collector{includes, opts.Limits}
	return &Reconciler{
		hub: hub, store: store, events: events, opts: opts, runs: runs.New(), wishes: newWishes(opts.Clock), counts: fetching.NewCounts(opts.Metrics, opts.Clock, sourcev1.GitRepositoryKind),
		users:  users{store: store, opts: opts, collector: collector, restorer: &fetching.Restorer{Store: store, Clock: opts.Clock}},
		limits: fetching.Limiter{Hub: hub, Store: store, Of: opts.Namespaces}, access: access{hub, githubapp.NewTokens(opts.Clock), cloudlogin.New(opts.Git.Egress, opts.Clock)}, verifier: verifier{hub, opts.Clock}, includes: includes, collector: collector,
	}
}

// Register adds the loop to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	sweep := func(ctx context.Context) error {
		fetching.Sweep(ctx, r.hub, r.store, sourcev1.GitRepositoryKind, func() client.Object { return &sourcev1.GitRepository{} })
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(sweep)); err != nil {
		return fmt.Errorf("register GitRepository loop: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("gitrepository").
		For(&sourcev1.GitRepository{}, builder.WithPredicates(r.runs.Predicate(), fetching.Asked(gitopsv1alpha1.LFSAnnotation, gitopsv1alpha1.RollbackProtectionAnnotation), r.wishes.Predicate())).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(r.includes.users), builder.WithPredicates(concerning{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Workers,
			NewQueue:                fairqueue.ByNamespace(r.opts.Workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](fetching.FirstRetry, fetching.LastRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register GitRepository loop: %w", err)
	}
	return nil
}

func ownerOf(key client.ObjectKey) string {
	return artifact.Owner(sourcev1.GitRepositoryKind, key.Namespace, key.Name)
}

// Reconcile brings one repository's artifact up to date.
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
	var object sourcev1.GitRepository
	err := r.hub.Get(ctx, req.NamespacedName, &object)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.store.Release(ownerOf(req.NamespacedName))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read GitRepository: %w", err)
	}
	run.WorksOn(&object)
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, fetching.LetGo(ctx, r.hub, &object, sourcev1.SourceFinalizer)
	}
	if object.Spec.Suspend {
		return reconcile.Result{}, nil
	}
	s := &state{object: &object, interval: max(object.Spec.Interval.Duration, fetching.MinInterval)}
	fetched := r.counts.Fetch.Begin()
	next, err := loop.Run(ctx, s, r.verifier.trust, r.refuse, r.limit, r.includes.find, r.connect, r.resolve, follow, r.users.find, r.fetch)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err() // stopping or superseded; neither is about the repository
	}
	doubt(s, err)
	fetched(s.outcome(), err)
	if reportErr := r.report(ctx, s, err); reportErr != nil {
		return reconcile.Result{}, reportErr
	}
	if err == nil {
		r.users.restore(ctx, s) // after the report, so that a new artifact does not wait for old ones
	}
	next.After = r.opts.Jitter(s.interval)
	if errors.Is(err, egress.ErrNotAllowed) {
		// A person has to act, but this is tried again at least every fetching.LastRetry:
		// the name may resolve to another address by then, without a change of the
		// object.
		return reconcile.Result{RequeueAfter: min(next.After, fetching.LastRetry)}, nil
	}
	return loop.Result(next, r.opts.Clean(&object, err))
}
