package poster

import (
	"context"
	"fmt"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/prometheus/client_golang/prometheus"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	queue "github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value of a field stands for its default.
type Options struct {
	// Secrets knows what must not be shown of a Provider.
	Secrets *inherited.Known
	// Metrics is where the loop counts; nil counts for nobody.
	Metrics prometheus.Registerer
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Every is how often a commit that stays pending is posted; default 10 s.
	Every time.Duration
	// FirstPause and LastPause bound how long a namespace leaves a forge alone after
	// faults; default 5 s and 5 min.
	FirstPause, LastPause time.Duration
	// Concurrent is how many forges are posted to at a time, one less at most of one
	// namespace; default 5, at least 2.
	Workers int
	// Egress opens connections. Its zero value reaches public addresses only.
	Egress egress.Dialer
	// Remains has the end of a Kustomization that a commit retires wait until clusters have removed what it
	// applied; nil waits for none.
	Remains Remains
	// Connect reaches a forge; nil takes those of package sources/forge, by Egress.
	Connect Connect
}

// Reconciler posts CommitStatuses. Use New.
type Reconciler struct {
	hub         client.Client
	opts        Options
	breakers    *breakers
	connections *connections
	written     *writecache.Cache[*gitopsv1alpha1.CommitStatus]
	counts      *stagemetrics.Stage
}

// New returns the loop. Live reads Secrets without a cache.
func New(hub client.Client, live client.Reader, opts Options) *Reconciler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Every <= 0 {
		opts.Every = 10 * time.Second
	}
	if opts.FirstPause <= 0 {
		opts.FirstPause = 5 * time.Second
	}
	if opts.LastPause <= 0 {
		opts.LastPause = 5 * time.Minute
	}
	if opts.Workers <= 0 {
		opts.Workers = 5
	}
	opts.Workers = queue.Workers(opts.Workers)
	if opts.Connect == nil {
		opts.Connect = connectForge(opts.Egress)
	}
	breakers := newBreakers(opts.FirstPause, opts.LastPause)
	return &Reconciler{
		hub: hub, opts: opts,
		breakers:    breakers,
		counts:      newCounts(opts.Metrics, opts.Clock, breakers),
		connections: newConnections(hub, live, opts),
		written:     writecache.New[*gitopsv1alpha1.CommitStatus](opts.Clock),
	}
}

// Register adds the loop to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("commitstatus-poster").
		For(&gitopsv1alpha1.CommitStatus{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}, r.endings())).
		Watches(&notificationv1beta3.Provider{}, handler.EnqueueRequestsFromMapFunc(r.unsyncedOf), builder.WithPredicates(predicate.GenerationChangedPredicate{}, changedOnly)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.opts.Workers, NewQueue: queue.ByNamespace(r.opts.Workers)}).
		Complete(r)
}

// endings lets everything pass, and ends the wait for own writes to what is gone.
func (r *Reconciler) endings() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		r.written.Gone(e.Object)
		return true
	}}
}

// changedOnly lets pass what is new or different, not what is listed at start
// or deleted.
var changedOnly = predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}

// unsyncedOf returns the CommitStatuses that wait for a Provider to be corrected.
func (r *Reconciler) unsyncedOf(ctx context.Context, provider client.Object) []reconcile.Request {
	var list gitopsv1alpha1.CommitStatusList
	if err := r.hub.List(ctx, &list, client.InNamespace(provider.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "find the commit statuses of a Provider")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.ProviderRef.Name == provider.GetName() && !synced(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// state is what the phases find out about one CommitStatus.
type state struct {
	key client.ObjectKey
	// before is it as it is on the hub, and status a copy with what was posted.
	before, status *gitopsv1alpha1.CommitStatus
	route          route
	acquired       bool      // we hold the route
	open           time.Time // until when the breaker is open; zero: it is closed
	to             sender
	// outcome is of the post, or why none can be tried; only read if tried.
	tried   bool
	outcome error
	// elsewhere says that the comment of the source reports it.
	elsewhere bool
	// closing is what is to be posted as it ends; nil for nothing.
	closing *gitopsv1alpha1.PostedStatus
	// lingers says that it does not end before clusters have removed what it is about.
	lingers bool
	// patient says that it did, so that how long ago it was deleted says nothing of the forge.
	patient bool
}

// Reconcile posts one CommitStatus to its forge, if the forge does not have it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := &state{key: req.NamespacedName}
	next, err := loop.Run(ctx, s, r.read, r.connections.elsewhere, retirement{hub: r.hub, clock: r.opts.Clock, remains: r.opts.Remains}.end, r.delay, r.acquire, r.connect, r.post)
	if s.acquired {
		defer r.breakers.release(s.route)
	}
	if err != nil {
		return loop.Result(next, err)
	}
	return r.report(ctx, s, next)
}

// read reads the CommitStatus, and ends the pass if the forge has it.
func (r *Reconciler) read(ctx context.Context, s *state) (loop.Next, error) {
	cached := &gitopsv1alpha1.CommitStatus{}
	err := r.hub.Get(ctx, s.key, cached)
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read the commit status: %w", err)
	}
	before, found := r.written.Latest(s.key, cached, err == nil)
	if !found || before.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(before, gitopsv1alpha1.CommitStatusFinalizer) {
		r.connections.kept.Forget(s.key)
		return loop.Next{Done: true}, nil
	}
	s.before, s.status, s.route = before, before.DeepCopy(), routeOf(before)
	if s.ends() {
		return loop.Next{}, nil
	}
	return loop.Next{Done: synced(before)}, nil
}

// ends reports whether the CommitStatus is being deleted.
func (s *state) ends() bool { return s.before != nil && s.before.DeletionTimestamp != nil }

// delay delays the post about a commit that stays pending.
func (r *Reconciler) delay(_ context.Context, s *state) (loop.Next, error) {
	if s.ends() {
		s.tried = s.closing == nil
		return loop.Next{Done: s.closing == nil}, nil
	}
	wait := r.tooSoon(s.status)
	return loop.Next{Done: wait > 0, After: max(wait, 0)}, nil
}

// acquire takes the route to the forge, before anything more is read: a status that waits for it
// comes back often.
func (r *Reconciler) acquire(_ context.Context, s *state) (loop.Next, error) {
	wait, open := r.breakers.acquire(s.route, r.opts.Clock.Now())
	s.acquired, s.open = wait == 0, open
	return loop.Next{Done: wait > 0, After: wait}, nil
}

// connect prepares the connection to the forge. A wrong Provider is an outcome, not an error.
func (r *Reconciler) connect(ctx context.Context, s *state) (_ loop.Next, err error) {
	s.to, err = r.connections.forge(ctx, s.status)
	if err != nil && loop.As(err, "").Class == loop.ClassStalled {
		s.tried, s.outcome = true, err
		return loop.Next{Done: true}, nil
	}
	return loop.Next{}, err
}

// synced reports whether the forge has the spec.
func synced(cs *gitopsv1alpha1.CommitStatus) bool {
	return cs.Status.ObservedGeneration == cs.Generation && apimeta.IsStatusConditionTrue(cs.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
}

// tooSoon returns how long what is new of a commit that stays pending has to wait.
func (r *Reconciler) tooSoon(cs *gitopsv1alpha1.CommitStatus) time.Duration {
	posted := cs.Status.Posted
	if posted == nil || posted.Commit != cs.Spec.Commit || posted.State != gitopsv1alpha1.CommitPending || cs.Spec.State != gitopsv1alpha1.CommitPending {
		return 0
	}
	every := r.opts.Every
	if posted.Comment != nil {
		every *= slowerComments
	}
	return every - r.opts.Clock.Since(posted.At.Time)
}

// slowerComments is how many times longer a comment stays as it is, while its commit is pending: forges take
// fewer comments than statuses.
const slowerComments = 3

// post closes the status of the commit before, if it was left pending, and then posts the
// new one.
func (r *Reconciler) post(ctx context.Context, s *state) (loop.Next, error) {
	end := r.counts.Begin()
	s.tried, s.outcome = true, classify(s.postBoth(ctx, r.opts.Clock))
	end(gitopsv1alpha1.CommitStatusReasonPosted, s.outcome)
	return loop.Next{}, nil
}

// shortCommit is how much of a commit names it to people.
const shortCommit = 8

// postBoth posts what is left pending of the commit before, and then the spec.
func (s *state) postBoth(ctx context.Context, clock clock.PassiveClock) error {
	if s.ends() && s.closing != nil {
		return s.postOne(ctx, clock, posting{PostedStatus: *s.closing, last: true})
	}
	spec := &s.status.Spec
	if last := s.status.Status.Posted; last != nil && last.Commit != spec.Commit && last.State == gitopsv1alpha1.CommitPending {
		superseded := gitopsv1alpha1.PostedStatus{Commit: last.Commit, State: gitopsv1alpha1.CommitError, Description: "superseded by " + spec.Commit[:shortCommit]}
		if last.Succeeded { // all clusters had it; what became of one of them since is posted about the next commit
			superseded.State, superseded.Description = gitopsv1alpha1.CommitSuccess, "ready in all clusters once, superseded by "+spec.Commit[:shortCommit]
		}
		err := s.postOne(ctx, clock, posting{PostedStatus: superseded, last: true})
		if e := loop.As(classify(err), ""); e != nil && e.Class != loop.ClassStalled && e.Reason != gitopsv1alpha1.CommitStatusReasonNoPullRequest {
			return err
		}
		// What the forge refuses to hear of a commit that is over, as it is gone, keeps nothing of the next one.
	}
	return s.postOne(ctx, clock, posting{PostedStatus: gitopsv1alpha1.PostedStatus{Commit: spec.Commit, State: spec.State, Description: spec.Description}})
}

// postOne posts to the forge, and records that it did, and when.
func (s *state) postOne(ctx context.Context, clock clock.PassiveClock, what posting) error {
	if err := s.to.send(ctx, s.status, &what); err != nil {
		return err
	}
	last := s.status.Status.Posted
	what.Succeeded = what.State == gitopsv1alpha1.CommitSuccess || last != nil && last.Commit == what.Commit && last.Succeeded
	what.At = metav1.NewTime(clock.Now())
	s.status.Status.Posted = &what.PostedStatus
	log.FromContext(ctx).Info("posted commit status", "commit", what.Commit, "state", what.State, "description", what.Description)
	return nil
}

// report writes the outcome into the status. After a fault of the forge it is retried by
// itself; what only a person can mend is tried again once a minute.
func (r *Reconciler) report(ctx context.Context, s *state, next loop.Next) (reconcile.Result, error) {
	e := loop.As(s.outcome, gitopsv1alpha1.CommitStatusReasonUnreachable)
	if s.ends() {
		return r.close(ctx, s, next, e)
	}
	switch {
	case !s.open.IsZero():
		return reconcile.Result{RequeueAfter: next.After}, r.reportWaiting(ctx, s)
	case !s.tried:
		return reconcile.Result{RequeueAfter: next.After}, nil
	case s.elsewhere:
		return reconcile.Result{}, r.write(ctx, s, metav1.ConditionTrue, gitopsv1alpha1.CommitStatusReasonInComment, "the comment of its source tells it")
	case e != nil && e.Reason == gitopsv1alpha1.CommitStatusReasonNoPullRequest:
		r.breakers.succeeded(s.route)
		status, after := s.noPullRequest(e, r.opts.Clock.Now())
		return reconcile.Result{RequeueAfter: after}, r.write(ctx, s, status, e.Reason, e.Error())
	case e == nil:
		r.breakers.succeeded(s.route)
		return reconcile.Result{}, r.write(ctx, s, metav1.ConditionTrue, gitopsv1alpha1.CommitStatusReasonPosted, "the forge knows")
	}
	after := min(r.opts.LastPause, mendedPause)
	if e.Reason == gitopsv1alpha1.CommitStatusReasonUnreachable {
		after = r.breakers.failed(s.route, r.opts.Clock.Now(), e.After)
	}
	return reconcile.Result{RequeueAfter: after}, r.write(ctx, s, metav1.ConditionFalse, e.Reason, e.Error())
}

// longestClosing is how long the end of a CommitStatus waits for a forge that does not answer: what is
// deleted must not hang for that.
const longestClosing = time.Minute

// over reports whether a CommitStatus that is being deleted has been closed, or cannot be.
func (s *state) over(e *loop.Error, now time.Time) bool {
	switch {
	case s.patient:
		return s.tried && (e == nil || e.Reason != gitopsv1alpha1.CommitStatusReasonUnreachable)
	case now.Sub(s.before.DeletionTimestamp.Time) >= longestClosing:
		return true
	case !s.tried:
		return false
	default:
		return e == nil || e.Reason != gitopsv1alpha1.CommitStatusReasonUnreachable
	}
}

// linger records what was posted about a CommitStatus that does not end yet, and comes back.
func (r *Reconciler) linger(ctx context.Context, s *state, next loop.Next, e *loop.Error) (reconcile.Result, error) {
	switch {
	case !s.tried || s.closing == nil:
		return reconcile.Result{RequeueAfter: max(next.After, lingerPoll)}, nil
	case e == nil:
		r.breakers.succeeded(s.route)
		return reconcile.Result{RequeueAfter: lingerPoll}, r.write(ctx, s, metav1.ConditionTrue, gitopsv1alpha1.CommitStatusReasonPosted, "the forge knows")
	case e.Reason == gitopsv1alpha1.CommitStatusReasonUnreachable:
		return reconcile.Result{RequeueAfter: min(max(r.breakers.failed(s.route, r.opts.Clock.Now(), e.After), lingerPoll), longestClosing)}, nil
	default:
		return reconcile.Result{}, letGo(ctx, r.hub, s) // there is nobody to post to
	}
}

// close removes the finalizer of a CommitStatus that is being deleted, or comes back.
func (r *Reconciler) close(ctx context.Context, s *state, next loop.Next, e *loop.Error) (reconcile.Result, error) {
	if s.lingers {
		return r.linger(ctx, s, next, e)
	}
	if s.over(e, r.opts.Clock.Now()) {
		return reconcile.Result{}, letGo(ctx, r.hub, s)
	}
	after := next.After
	if s.tried {
		after = r.breakers.failed(s.route, r.opts.Clock.Now(), e.After)
	}
	return reconcile.Result{RequeueAfter: min(max(after, time.Second), longestClosing)}, nil
}

// letGo takes the finalizer off a CommitStatus.
func letGo(ctx context.Context, hub client.Client, s *state) error {
	after := s.before.DeepCopy()
	controllerutil.RemoveFinalizer(after, gitopsv1alpha1.CommitStatusFinalizer)
	if err := hub.Patch(ctx, after, client.MergeFrom(s.before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("let the commit status go: %w", err))
	}
	return nil
}

// reportWaiting reports once that what was not posted yet has to wait: a condition that
// is not True already is right. A route that is merely taken is free in a moment, which
// is not worth a write.
func (r *Reconciler) reportWaiting(ctx context.Context, s *state) error {
	known := apimeta.FindStatusCondition(s.status.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
	if known != nil && known.Status != metav1.ConditionTrue {
		return nil
	}
	return r.write(ctx, s, metav1.ConditionUnknown, gitopsv1alpha1.CommitStatusReasonWaiting, "waits for the forge until "+s.open.UTC().Format(time.RFC3339))
}

// write records what was posted and the condition Synced, if that changes anything. Nothing
// else writes a status here.
func (r *Reconciler) write(ctx context.Context, s *state, status metav1.ConditionStatus, reason, message string) error {
	cs := s.status
	cs.Status.ObservedGeneration = cs.Generation
	apimeta.SetStatusCondition(&cs.Status.Conditions, metav1.Condition{
		Type: gitopsv1alpha1.CommitStatusSynced, Status: status, Reason: reason, Message: message,
		ObservedGeneration: cs.Generation, LastTransitionTime: metav1.NewTime(r.opts.Clock.Now()),
	})
	if apiequality.Semantic.DeepEqual(s.before.Status, cs.Status) {
		return nil
	}
	// The post's own deadline must not keep its outcome from being written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := r.hub.Status().Patch(ctx, cs, client.MergeFrom(s.before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write what was posted: %w", err))
	}
	r.written.Wrote(cs.DeepCopy())
	return nil
}

const (
	writeTimeout = 10 * time.Second
	// mendedPause is how often what only a person can mend is tried again.
	mendedPause = time.Minute
)
