package scheduler

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// wakes enqueues the bindings that a change may place elsewhere. It decides no placement.
type wakes struct {
	hub       client.Reader
	decider   *decider.Decider
	opts      Options
	written   *writecache.Cache[workv1alpha2.Binding]
	moved     *recentMoves
	requested requests
	woken     loop.Inbox[reconcile.Request]
}

// wake enqueues the unschedulable bindings that may fit now.
func (w *wakes) wake(ctx context.Context) {
	clusters, err := w.decider.Available(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings that a cluster has room for")
		return
	}
	for _, b := range w.decider.Unschedulable().Due(func(b workv1alpha2.Binding, name string) bool {
		c, ok := clusters.Cluster(name)
		return ok && affects(b.BindingSpec(), c) && clusters.HasCapacity(name, b.BindingSpec())
	}) {
		w.woken.AddWithPriority(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}, w.priorityOf(b))
	}
}

// sooner enqueues bindings whose turn comes earlier than they wait for.
func (w *wakes) sooner(waiting []reconcile.Request) {
	for _, req := range waiting {
		w.woken.Add(req, true)
	}
}

// quotaEvents enqueues the bindings that wait for a quota of the namespace, when it is edited or
// deleted. What other bindings free, they find out by their retries.
func (w *wakes) quotaEvents() handler.TypedEventHandler[*policyv1alpha1.FederatedResourceQuota, reconcile.Request] {
	enqueue := func(quota *policyv1alpha1.FederatedResourceQuota, q queue) {
		for _, b := range w.decider.Unschedulable().OverQuota(quota.Namespace) {
			w.add(q, b, 0)
		}
	}
	return handler.TypedFuncs[*policyv1alpha1.FederatedResourceQuota, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*policyv1alpha1.FederatedResourceQuota], q queue) {
			enqueue(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*policyv1alpha1.FederatedResourceQuota], q queue) {
			enqueue(e.Object, q)
		},
	}
}

// bindingEvents enqueues every binding that is created or changes; those that
// exist at the start with a low priority, as they are most likely placed.
func (w *wakes) bindingEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			behind := 0
			if e.IsInInitialList {
				behind = handler.LowPriority
				w.moved.found(e.Object.(workv1alpha2.Binding))
			}
			w.add(q, e.Object.(workv1alpha2.Binding), behind)
			w.defined(q, e.Object.(workv1alpha2.Binding))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			w.defined(q, e.ObjectNew.(workv1alpha2.Binding))
			if b := e.ObjectNew.(workv1alpha2.Binding); !w.written.Observed(b) {
				w.request(b)
				w.add(q, b, 0)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			w.written.Gone(e.Object)
			w.add(q, e.Object.(workv1alpha2.Binding), handler.LowPriority)
		},
	}
}

// defined enqueues the unschedulable bindings whose kind may be defined by the template
// of b, a CustomResourceDefinition.
func (w *wakes) defined(q queue, b workv1alpha2.Binding) {
	group, ok := placement.Defines(b)
	if !ok {
		return
	}
	for _, waiting := range w.decider.Unschedulable().OfGroup(group) {
		w.add(q, waiting, 0)
	}
}

// add enqueues b with its own priority plus ahead, which is negative for work that can
// wait.
func (w *wakes) add(q queue, b workv1alpha2.Binding, ahead int) {
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}
	priority := ahead + w.priorityOf(b)
	if q, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, req)
		return
	}
	q.Add(req)
}

// priorityOf returns the schedule priority of b; 0 if it has none, or priorities are off.
func (w *wakes) priorityOf(b workv1alpha2.Binding) int {
	if p := b.BindingSpec().SchedulePriority; p != nil && !w.opts.NoPriority {
		return int(p.Priority)
	}
	return 0
}

// clusterEvents enqueues the bindings that a change of a cluster may move. These
// may be many, so they get a low priority: edits by users go first.
func (w *wakes) clusterEvents() handler.TypedEventHandler[*clusterv1alpha1.Cluster, reconcile.Request] {
	return handler.TypedFuncs[*clusterv1alpha1.Cluster, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster], q queue) {
			w.decider.ClusterChanged(nil, nil)
			if !e.IsInInitialList { // at the start bindingEvents enqueues every binding
				w.enqueueAffected(ctx, q, e.Object)
				w.unfit(q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], q queue) {
			w.decider.ClusterChanged(e.ObjectOld, e.ObjectNew)
			if matters(e.ObjectOld, e.ObjectNew) {
				w.enqueueAffected(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*clusterv1alpha1.Cluster], q queue) {
			w.decider.ClusterChanged(nil, nil)
			w.enqueueAffected(ctx, q, e.Object)
			w.unfit(q)
		},
	}
}

// unfit enqueues the bindings that no cluster fits when a cluster joins or leaves, even if they do not select it: their
// message may be that no cluster has joined, or has to become that. If it stays the same, nothing is written.
func (w *wakes) unfit(q queue) {
	for _, b := range w.decider.Unschedulable().Unfit() {
		w.add(q, b, handler.LowPriority)
	}
}

func (w *wakes) enqueueAffected(ctx context.Context, q queue, versions ...*clusterv1alpha1.Cluster) {
	err := bindings.Each(ctx, w.hub, func(b workv1alpha2.Binding) {
		if affects(b.BindingSpec(), versions...) {
			w.request(b)
			w.add(q, b, handler.LowPriority)
		}
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings that a cluster affects", "cluster", versions[0].Name)
	}
}

// request records that an event asks for a placement of b, if Options.DateEachTrial is set: only then does the same
// decision get a new time.
func (w *wakes) request(b workv1alpha2.Binding) {
	if w.opts.DateEachTrial {
		w.requested.add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	}
}

// decisive passes the changes of a binding on which a placement depends.
func decisive() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || healthChanges(e.ObjectOld, e.ObjectNew)
	}}
}

// healthChanges reports whether what a placement goes by has changed in any cluster: the time since which a template is unhealthy, if
// its policy has application failover; and the health of what leaves a cluster as a whole, as that may be taken back.
func healthChanges(before, after client.Object) bool {
	was, ok := before.(workv1alpha2.Binding)
	is, also := after.(workv1alpha2.Binding)
	if !ok || !also {
		return false
	}
	spec := is.BindingSpec()
	fails := spec.Failover != nil && spec.Failover.Application != nil
	leaves := len(spec.GracefulEvictionTasks) > 0 && placement.Whole(spec)
	if !fails && !leaves {
		return false
	}
	return !slices.EqualFunc(was.BindingStatus().AggregatedStatus, is.BindingStatus().AggregatedStatus, func(a, b workv1alpha2.AggregatedStatusItem) bool {
		return a.ClusterName == b.ClusterName && (!fails || a.UnhealthySince.Equal(b.UnhealthySince)) && (!leaves || a.Health == b.Health)
	})
}

// matters reports whether placements may depend on what changed. Free resources do not
// count: nothing that runs is moved because of them, and the unschedulable queue looks at them for those
// that wait for capacity. Readiness counts by its taints.
func matters(before, after *clusterv1alpha1.Cluster) bool {
	was, is := &before.Spec, &after.Spec
	return before.UID != after.UID ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels) ||
		was.Region != is.Region || was.Zone != is.Zone || was.Provider != is.Provider ||
		!equality.Semantic.DeepEqual(was.Zones, is.Zones) ||
		!equality.Semantic.DeepEqual(was.Taints, is.Taints) ||
		movesNow(before, after) ||
		!equality.Semantic.DeepEqual(before.Status.APIEnablements, after.Status.APIEnablements)
}

// movesNow reports whether it has changed whether failover may move templates off a cluster that has a NoExecute
// taint.
func movesNow(before, after *clusterv1alpha1.Cluster) bool {
	tainted := slices.ContainsFunc(after.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
	return tainted && (failover.Movable(before) != failover.Movable(after) || failover.Suspected(before) != failover.Suspected(after))
}

// affects reports whether a change between versions of a cluster may change the
// placement: the binding runs there, or one of its affinities selects one of the
// versions.
func affects(spec *workv1alpha2.ResourceBindingSpec, versions ...*clusterv1alpha1.Cluster) bool {
	for _, target := range spec.Clusters {
		if target.Name == versions[0].Name {
			return true
		}
	}
	return slices.ContainsFunc(versions, func(c *clusterv1alpha1.Cluster) bool { return selector.Placement(c, spec.Placement) })
}
