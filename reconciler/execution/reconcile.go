package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/acting"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// state is one look at one Work.
type state struct {
	key     client.ObjectKey
	work    *workv1alpha1.Work         // shared: not to be changed
	beside  bool                       // whether it goes as its binding goes, not deleted itself
	cluster *clusterv1alpha1.Cluster   // nil: gone
	member  member                     // nil: not connected
	parsed  []manifest                 // the Work's manifests
	applied []workv1alpha1.AppliedHash // the record as it is to be
	objects []*members.Observed        // by ordinal; nil where there is none
	known   []bool                     // by ordinal: whether objects tells the truth
	failed  []error                    // by ordinal; nil where all is well
	drifts  []*drift                   // by ordinal; nil where nobody interfered
	left    []manifest                 // what the Work had sent, does not name any more and is still there
	stuck   error                      // why some of that could not be removed
	status  *workv1alpha1.WorkStatus   // as it is to be
	blocked *waitqueue.Blocked
}

// Reconcile carries one Work of the lane's cluster.
func (l *lane) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	since := l.queue.Begin(req.NamespacedName)
	s, found, err := l.look(ctx, req.NamespacedName)
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	phases := []loop.Phase[state]{l.connect, l.hold, l.carry, tidier{l}.run, l.describe, l.report}
	leaving := !s.work.DeletionTimestamp.IsZero()
	switch {
	case l.cluster == "" && (!leaving || s.cluster != nil && l.serves(s.cluster)):
		return reconcile.Result{}, nil // its cluster's own lane has it, or nobody
	case leaving:
		phases = []loop.Phase[state]{l.discard, l.letGo}
	}
	next, err := loop.Run(ctx, s, phases...)
	if b := (*waitqueue.Blocked)(nil); err != nil && ctx.Err() == nil && !errors.As(err, &b) {
		// What the Work's own status does not tell.
		log.FromContext(ctx).Error(err, "Work is tried again")
	}
	return l.next(ctx, s, next, errors.Join(err, s.problem()), since)
}

// problem is why the Work has to be looked at again.
func (s *state) problem() error {
	if s.blocked != nil {
		return s.blocked
	}
	return errors.Join(append(slices.DeleteFunc(slices.Clone(s.failed), outcome.IsAsItIs), s.stuck)...)
}

// next turns the outcome of a look into when to look again.
func (l *lane) next(ctx context.Context, s *state, next loop.Next, err error, since int) (reconcile.Result, error) {
	if err == nil {
		l.queue.Retries.Forget(s.key)
		return reconcile.Result{RequeueAfter: next.After}, nil
	}
	c, after := waitqueue.Cause{Event: waitqueue.OnRetry}, time.Duration(0)
	var b *waitqueue.Blocked
	var unruled *retention.Fault
	var held *heldError
	var refusal *acting.Refusal
	switch {
	case errors.As(err, &b):
		c, after = b.Cause, b.After
	case errors.Is(err, members.ErrNotServed):
		c = waitqueue.Cause{Event: waitqueue.OnKinds}
	case errors.As(err, &held):
		c = held.cause()
	case errors.As(err, &refusal):
		c = waitqueue.Cause{Event: waitqueue.OnRights, Lack: refusal.Lack()}
	case errors.As(err, &unruled):
		c, after = waitqueue.Cause{Event: waitqueue.OnSync, Kind: unruled.Kind}, interpreters.Costs(unruled) // the event comes when the rules change
	}
	if after == 0 {
		after = l.queue.Retries.When(s.key)
	}
	if !l.queue.Wait(s.key, c, since) || l.owners.freed(ctx, err) {
		after = min(after, backoff.FirstRetry)
	}
	if next.After > 0 {
		after = min(after, next.After)
	}
	log.FromContext(ctx).V(1).Info("Work waits", "reason", err.Error(), "after", after)
	return reconcile.Result{RequeueAfter: after}, nil
}

// look reads the Work and its cluster.
func (l *lane) look(ctx context.Context, key client.ObjectKey) (*state, bool, error) {
	cached := &workv1alpha1.Work{}
	err := l.hub.Get(ctx, key, cached, unsafeGet)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("read work %s: %w", key, err)
	}
	work, found := l.wrote.Latest(key, cached, err == nil)
	if !found || apierrors.IsNotFound(err) {
		l.forget(key)
		if now, renamed := l.applied.renames.Now(key); renamed {
			l.queue.Add(now)
		}
		return nil, false, nil
	}
	as, beside, there, err := l.parting.As(ctx, work)
	if err != nil || !there {
		return nil, false, err
	}
	s := &state{key: key, work: as, beside: beside}
	name, ok := workv1alpha2.ClusterOfExecutionNamespace(key.Namespace)
	if !ok {
		return nil, false, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	switch err := l.hub.Get(ctx, client.ObjectKey{Name: name}, cluster, unsafeGet); {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return nil, false, fmt.Errorf("read cluster %s: %w", name, err)
	}
	s.member, _ = l.connected(name)
	return s, true, nil
}

// unsafeGet reads from the cache without a copy: what is read is not changed.
var unsafeGet = client.UnsafeDisableDeepCopy

// connect waits for the member. A Work whose dispatching is suspended is not
// carried, but what it became is still reported.
func (l *lane) connect(_ context.Context, s *state) (loop.Next, error) {
	if s.member == nil {
		s.blocked = &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnProof}, After: waitqueue.SafetyNet, Err: fmt.Errorf("cluster %s is not connected", l.cluster)}
		return loop.Next{Done: true}, nil
	}
	s.parsed = l.applied.manifests(s.work)
	s.applied = l.applied.records(s.work, l.options.Seal, len(s.parsed))
	s.objects, s.known = make([]*members.Observed, len(s.parsed)), make([]bool, len(s.parsed))
	s.failed, s.drifts = make([]error, len(s.parsed)), l.applied.untold(s.work, len(s.parsed))
	return loop.Next{}, nil
}

// hold puts the loop's finalizer on a Work that lacks it, so that its objects go
// when it goes. Works that Flotilla makes have it from the start.
func (l *lane) hold(ctx context.Context, s *state) (loop.Next, error) {
	if holds(s.work) || suspended(s.work) {
		return loop.Next{}, nil
	}
	work := s.work.DeepCopy()
	controllerutil.AddFinalizer(work, workv1alpha2.ExecutionControllerFinalizer)
	if err := l.hub.Patch(ctx, work, client.MergeFromWithOptions(s.work, client.MergeFromWithOptimisticLock{})); err != nil {
		return loop.Next{}, fmt.Errorf("hold work %s: %w", s.key, err)
	}
	l.wrote.Wrote(work)
	s.work = work
	return loop.Next{}, nil
}

// ready reports whether the hub takes the cluster for healthy.
func ready(cluster *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

// holds reports whether the loop holds the Work.
func holds(work *workv1alpha1.Work) bool {
	return controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionControllerFinalizer)
}
