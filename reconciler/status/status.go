package status

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/silences"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Options tune the loop. The zero value is what production uses.
type Options struct {
	// SchedulerName is the scheduler whose decisions are reported; empty means the
	// default.
	SchedulerName string
	// Workers is how many bindings are reconciled concurrently, and one
	// less of one namespace; zero means 5.
	Workers int
	// Debounce is how long completion and failures wait for changes of other clusters
	// that arrive at the same moment; zero means 20 ms.
	Debounce time.Duration
	// Wait is how long partial progress waits for more; zero means 100 ms, as
	// the changes of each cluster have been delayed already. That another cluster is to have it as well waits for MaxWait:
	// that one is about to report; and for OverdueAfter while that one takes up others.
	Wait time.Duration
	// MaxWait is how long partial progress waits in all; zero means 1 s.
	MaxWait time.Duration
	// Behind is how long a binding waits for more of what its template reports
	// already; zero means 1 s, and three times that in all.
	Behind time.Duration
	// OverdueAfter is for how long a cluster may take up nothing of what it is sent before
	// it counts as not having it; zero means 10 s.
	OverdueAfter time.Duration
	// SilentAfter is for how long nothing has to be heard of a cluster before what it reported last does not count in
	// templates' statuses; zero means a minute.
	SilentAfter time.Duration
	// Metrics is where the loop counts; nil counts for nobody.
	Metrics prometheus.Registerer
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
}

const (
	defaultWorkers  = 5
	defaultDebounce = 20 * time.Millisecond
	defaultWait     = 100 * time.Millisecond
	defaultMaxWait  = time.Second
	defaultBehind   = time.Second
	// By then a cluster at work has taken something up.
	defaultOverdueAfter = 10 * time.Second
	// What fails over has left the cluster by then, so that its template is not written twice more.
	defaultSilentAfter = time.Minute

	// A rule that fails is asked again after a while: a webhook may recover.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute

	// A write that the hub refuses is repeated soon: nothing else wakes this loop
	// when the hub is back.
	firstResend = 10 * time.Millisecond
	lastResend  = 30 * time.Second
)

func limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstResend, lastResend)
}

// Templates reads templates, and records what was written to them.
type Templates interface {
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
	Put(obj *unstructured.Unstructured)
}

// Aggregator adds statuses up.
type Aggregator interface {
	// AggregateStatus returns the status that the template should have. Changed
	// is false where it has it already, or where its kind has no rule.
	AggregateStatus(template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (status map[string]any, changed bool, err error)
	// Unheard returns what of the items counts where nothing is heard any more of some clusters, since a time.
	Unheard(template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem, silent map[string]time.Time) []workv1alpha2.AggregatedStatusItem
	// KnowsSilence reports whether that differs from the items for a kind.
	KnowsSilence(gvk schema.GroupVersionKind) bool
}

// Reconciler writes the statuses of bindings and templates.
type Reconciler struct {
	hub        client.Client
	templates  Templates
	aggregator Aggregator
	opts       Options
	writer     writer
	delays     delays
	faults     workqueue.TypedRateLimiter[client.ObjectKey]
	overdue    *overdue
	arrivals   *arrivals
	unheard    *silences.Watch
	inbox      inbox
	counts     *stagemetrics.Stage
}

// New returns the loop.
func New(hub client.Client, templates Templates, aggregator Aggregator, o Options) *Reconciler {
	o = defaults(o)
	r := &Reconciler{
		hub:        hub,
		templates:  templates,
		aggregator: aggregator,
		opts:       o,
		writer:     writer{hub: hub, templates: templates, wrote: writecache.New[workv1alpha2.Binding](o.Clock)},
		delays:     newDelays(o),
		faults:     workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](firstRetry, lastRetry),
		overdue:    newOverdue(o),
		arrivals:   newArrivals(o),
		counts:     newCounts(o.Metrics, o.Clock),
	}
	r.unheard = silences.New(hub, silences.Options{After: o.SilentAfter, Since: unreadySince, Turned: r.recount, Clock: o.Clock})
	return r
}

func defaults(o Options) Options {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Debounce == 0 {
		o.Debounce = defaultDebounce
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.MaxWait == 0 {
		o.MaxWait = defaultMaxWait
	}
	if o.Behind == 0 {
		o.Behind = defaultBehind
	}
	if o.OverdueAfter == 0 {
		o.OverdueAfter = defaultOverdueAfter
	}
	if o.SilentAfter == 0 {
		o.SilentAfter = defaultSilentAfter
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Register adds the loop to mgr.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("status").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Workers,
			NewQueue:                fairqueue.ByNamespace(r.opts.Workers),
			RateLimiter:             limiter(),
		}).
		Watches(&workv1alpha2.ResourceBinding{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(r.desiredChanges())).
		Watches(&workv1alpha2.ClusterResourceBinding{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(r.desiredChanges())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, w client.Object) []reconcile.Request { return bindingOf(w) }), builder.WithPredicates(r.reportedChanges())).
		WatchesRawSource(source.Func(r.inbox.attach)).
		WatchesRawSource(source.Func(r.overdue.attach)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the status loop: %w", err)
	}
	return r.unheard.Register(mgr, "status-clusters")
}

// bindingOf names the binding that a Work is of.
func bindingOf(work client.Object) []reconcile.Request {
	annotations := work.GetAnnotations()
	key := client.ObjectKey{
		Namespace: annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey],
		Name:      annotations[workv1alpha2.ResourceBindingNameAnnotationKey],
	}
	if key.Name == "" {
		key = client.ObjectKey{Name: annotations[workv1alpha2.ClusterResourceBindingAnnotationKey]}
	}
	if key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// desiredChanges passes bindings on whose spec or decision record changed. Their status
// is written by this loop.
func (r *Reconciler) desiredChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			if b, ok := e.ObjectNew.(workv1alpha2.Binding); ok {
				r.writer.wrote.Observed(b)
			}
			was, is := e.ObjectOld, e.ObjectNew
			return was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() ||
				was.GetAnnotations()[workv1alpha2.SchedulingDecisionAnnotation] != is.GetAnnotations()[workv1alpha2.SchedulingDecisionAnnotation] ||
				was.GetAnnotations()[dependency.FaultAnnotation] != is.GetAnnotations()[dependency.FaultAnnotation] ||
				was.GetAnnotations()[propagation.ClusterFaultsAnnotation] != is.GetAnnotations()[propagation.ClusterFaultsAnnotation]
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			key := client.ObjectKeyFromObject(e.Object)
			r.writer.wrote.Gone(e.Object)
			r.delays.forget(key)
			r.faults.Forget(key)
			return false
		},
	}
}

// reportedChanges passes Works on whose status changed, or that are being deleted.
func (r *Reconciler) reportedChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if is, ok := e.Object.(*workv1alpha1.Work); ok {
				r.overdue.observe(is, true)
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.overdue.gone(client.ObjectKeyFromObject(e.Object))
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*workv1alpha1.Work)
			is, also := e.ObjectNew.(*workv1alpha1.Work)
			if also {
				r.overdue.observe(is, false)
			}
			if ok && also {
				r.arrivals.observe(was, is)
			}
			return !ok || !also || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() || !members.Same(reported(was), reported(is)) ||
				was.Annotations[propagation.FaultAnnotation] != is.Annotations[propagation.FaultAnnotation]
		},
	}
}

// reported is the part of a Work's status that a binding shows.
func reported(work *workv1alpha1.Work) workv1alpha1.WorkStatus {
	return workv1alpha1.WorkStatus{Conditions: work.Status.Conditions, ManifestStatuses: work.Status.ManifestStatuses}
}

// state is one pass over one binding.
type state struct {
	key      client.ObjectKey
	binding  workv1alpha2.Binding                // shared: not to be changed
	works    []*workv1alpha1.Work                // shared, too
	items    []workv1alpha2.AggregatedStatusItem // their statuses, untruncated
	outcome  rollup.Total
	status   workv1alpha2.ResourceBindingStatus
	changed  bool                       // the binding is to be written
	template *unstructured.Unstructured // nil: nothing is to be written there
	total    map[string]any             // the template's status to be written; nil: unchanged
}

// Reconcile brings the status of one binding and its template up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cached := bindings.New(req.Namespace)
	err := r.hub.Get(ctx, req.NamespacedName, cached, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read binding %s: %w", req.NamespacedName, err)
	}
	b, found := r.writer.wrote.Latest(req.NamespacedName, cached, err == nil)
	if !found || !b.GetDeletionTimestamp().IsZero() {
		r.delays.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	s := &state{key: req.NamespacedName, binding: b}
	end := r.counts.Begin()
	next, err := loop.Run(ctx, s, r.gather, r.total, r.collect, r.debounce, r.write)
	end(outcomeOf(next), err)
	return loop.Result(next, err)
}
