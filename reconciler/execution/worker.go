package execution

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/metrics"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/owners"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// worker is a cluster worker: it reconciles the Works of one cluster.
type worker struct {
	cluster string // empty: Works whose Cluster is gone
	// elsewhere reports whether a Work's cluster has a worker, or should have one.
	elsewhere elsewhere
	hub       client.Reader
	queue     *waitqueue.Queue
	owners    *owners.Owners
	renames   *ownermeta.Renames
	memories  []memory // all that keeps something by Work, to be dropped when the Work is gone

	reader    *workReader
	lifetime  *lifetime
	applier   *applier
	pruner    *pruner
	describer *describer
	reporter  *reporter
	dispatch  *stagemetrics.Stage
}

// memory keeps something of Works for as long as they exist.
type memory interface {
	Forget(work client.ObjectKey)
}

var _ reconcile.Reconciler = (*worker)(nil)

// Reconcile reconciles one Work of the worker's cluster.
func (w *worker) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	since := w.queue.Begin(req.NamespacedName)
	s, found, err := w.read(ctx, req.NamespacedName)
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	phases := []loop.Phase[state]{w.reader.connect, w.lifetime.addFinalizer, w.applier.apply, w.pruner.prune, w.describer.computeStatus}
	leaving := !s.work.DeletionTimestamp.IsZero()
	switch {
	case w.cluster == "" && (!leaving || s.cluster != nil && w.elsewhere.serves(s.cluster)):
		return reconcile.Result{}, nil // it belongs to the worker of its cluster, if there is one
	case leaving:
		phases = []loop.Phase[state]{w.lifetime.deleteObjects, w.lifetime.removeFinalizer}
	}
	end := w.dispatch.Begin()
	next, err := loop.Run(ctx, s, phases...)
	after, unwritten := w.reporter.report(ctx, s)
	end(metrics.Success(leaving, s.recorded()), metrics.Reasoned(errors.Join(err, unwritten, s.problem())))
	if unsaid := errors.Join(slices.DeleteFunc([]error{err, unwritten}, waitqueue.IsBlocked)...); unsaid != nil && ctx.Err() == nil {
		// These errors are not in the Work's status.
		log.FromContext(ctx).Error(unsaid, "Work is tried again")
	}
	return w.next(ctx, s, soonest(next, after), errors.Join(err, unwritten, s.problem()), since)
}

func soonest(a, b loop.Next) loop.Next {
	if a.After == 0 || b.After > 0 && b.After < a.After {
		return b
	}
	return a
}

// next turns the outcome of a pass into the time of the next one.
func (w *worker) next(ctx context.Context, s *state, next loop.Next, err error, since int) (reconcile.Result, error) {
	if err == nil {
		w.queue.Retries.Forget(s.key)
		return reconcile.Result{RequeueAfter: next.After}, nil
	}
	c, after := causeOf(err)
	if after == 0 {
		after = w.queue.Retries.When(s.key)
	}
	if errors.Is(err, members.ErrDefinitionLeaves) { // no event comes when a new definition serves the same kinds
		after = min(after, longestRemoval)
	}
	if !w.queue.Wait(s.key, c, since) || w.owners.Freed(ctx, err) {
		after = min(after, backoff.FirstRetry)
	}
	if next.After > 0 {
		after = min(after, next.After)
	}
	log.FromContext(ctx).V(1).Info("Work waits", "reason", err.Error(), "after", after)
	return reconcile.Result{RequeueAfter: after}, nil
}

// causeOf returns what a Work waits for, and how long at most; zero stands for the queue's
// back-off.
func causeOf(err error) (waitqueue.Cause, time.Duration) {
	var b *waitqueue.Blocked
	var unruled *retention.Fault
	var owned *owners.Owned
	var refusal *impersonation.Refusal
	switch {
	case errors.As(err, &b):
		return b.Cause, b.After
	case errors.Is(err, members.ErrNotServed), errors.Is(err, members.ErrDefinitionLeaves):
		return waitqueue.Cause{Event: waitqueue.OnKinds}, 0
	case errors.As(err, &owned):
		return owned.Cause(), 0
	case errors.As(err, &refusal):
		return waitqueue.Cause{Event: waitqueue.OnRights, Lack: refusal.Lack()}, 0
	case errors.As(err, &unruled): // a change of the rules counts as a sync of the kind
		return waitqueue.Cause{Event: waitqueue.OnSync, Kind: unruled.Kind}, interpreters.Costs(unruled)
	}
	return waitqueue.Cause{Event: waitqueue.OnRetry}, 0
}

// read reads the Work and its Cluster. If the Work is gone, it enqueues the one that has its former name, whose objects
// may have waited for it.
func (w *worker) read(ctx context.Context, key client.ObjectKey) (*state, bool, error) {
	work, found, err := w.reader.read(ctx, key)
	if err != nil {
		return nil, false, err
	}
	if !found {
		w.forget(key)
		if now, renamed := w.renames.Now(key); renamed {
			w.queue.Add(now)
		}
		return nil, false, nil
	}
	return w.reader.about(ctx, work)
}

// attach opens the worker's queue and adds the Works that
// exist already, behind those that change now.
func (w *worker) attach(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queue.Open(queue)
	if w.cluster == "" {
		w.load(ctx, metav1.NamespaceAll)
	} else {
		w.load(ctx, workv1alpha2.ExecutionNamespace(w.cluster))
	}
	return nil
}

// load enqueues the Works of a namespace. Those of clusters that are
// gone matter only if they are being deleted.
func (w *worker) load(ctx context.Context, namespace string) {
	var works workv1alpha1.WorkList
	if err := w.hub.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list works", "namespace", namespace)
		return
	}
	for i := range works.Items {
		work := &works.Items[i]
		key := client.ObjectKeyFromObject(work)
		w.owners.Note(work)
		if w.cluster == "" && (work.DeletionTimestamp.IsZero() || w.elsewhere.works(key)) {
			continue
		}
		w.queue.AddLater(key)
	}
}

// forget drops what is kept of a Work that is gone.
func (w *worker) forget(key client.ObjectKey) {
	for _, m := range w.memories {
		m.Forget(key)
	}
}
