package execution

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/reconciler/execution/cascadeguard"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// listen opens and closes workers as Clusters come and go, and enqueues Works at their workers.
func (r *Reconciler) listen(ctx context.Context, mgr ctrl.Manager) error {
	if err := r.finalizer.Listen(ctx, mgr, r.bindingGoes); err != nil {
		return err
	}
	clusters, err := mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	works, err := mgr.GetCache().GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	if _, err := clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.clusterSeen(ctx, nil, obj) },
		UpdateFunc: func(before, obj any) { r.clusterSeen(ctx, before, obj) },
		DeleteFunc: func(obj any) { r.clusterGone(ctx, obj) },
	}); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	if _, err := works.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.workSeen(nil, obj) },
		UpdateFunc: r.workSeen,
		DeleteFunc: r.workGone,
	}); err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	return nil
}

func (r *Reconciler) clusterSeen(ctx context.Context, before, obj any) {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	if r.opts.serves(cluster) {
		r.workers.open(ctx, cluster.Name)
	} else {
		r.workers.close(cluster.Name)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		// A cluster that is being unjoined releases Works that wait for it.
		r.workers.release(cluster.Name, func(waitqueue.Cause) bool { return true })
	} else if was, ok := before.(*clusterv1alpha1.Cluster); ok && access.AppliesAsAuthor(was) != access.AppliesAsAuthor(cluster) {
		r.workers.release(cluster.Name, func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnRights })
	}
}

func (r *Reconciler) clusterGone(ctx context.Context, obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	r.workers.close(cluster.Name)
	if orphans := r.workers.of(""); orphans != nil {
		orphans.load(ctx, workv1alpha2.ExecutionNamespace(cluster.Name))
	}
}

// workSeen enqueues a Work at its cluster's worker, unless only its status changed: that is our
// own write. An agent also reconciles after a status that it did not write, as its token may have been stolen.
func (r *Reconciler) workSeen(before, after any) {
	work, ok := after.(*workv1alpha1.Work)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(work)
	worker := r.workers.ofWork(key)
	if worker != nil {
		worker.owners.Note(work)
		worker.lifetime.last.Seen(work)
	}
	ours := r.wrote.Observed(work) || r.opts.Serves == nil
	if was, ok := before.(*workv1alpha1.Work); ok && ours && !asksOtherwise(was, work) {
		return
	}
	if worker != nil {
		worker.queue.Add(key)
		if work.DeletionTimestamp.IsZero() { // one that is being deleted holds its objects until it is gone
			worker.queue.Free(key)
		}
		return
	}
	if orphans := r.workers.of(""); orphans != nil && !work.DeletionTimestamp.IsZero() {
		orphans.queue.Add(key)
	}
}

// asksOtherwise reports whether anything of a Work has changed that the loop reads, other than its status.
func asksOtherwise(was, is *workv1alpha1.Work) bool {
	return was.Generation != is.Generation || was.UID != is.UID ||
		was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() || leavesDrift(was) != leavesDrift(is) || cascadeguard.Allowed(was) != cascadeguard.Allowed(is) ||
		slices.ContainsFunc([]string{workv1alpha2.WantedAgainAnnotation, workv1alpha2.AppliedByAnnotation, workv1alpha2.RemovalConfirmedAnnotation}, func(key string) bool { return was.Annotations[key] != is.Annotations[key] })
}

// bindingGoes enqueues a Work whose binding is being deleted.
func (r *Reconciler) bindingGoes(key client.ObjectKey) {
	if worker := r.workers.ofWork(key); worker != nil {
		worker.queue.Add(key)
	}
}

func (r *Reconciler) workGone(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if work, ok := obj.(*workv1alpha1.Work); ok {
		key := client.ObjectKeyFromObject(work)
		r.wrote.Gone(work)
		r.delayed.Forget(key)
		if worker := r.workers.ofWork(key); worker != nil {
			worker.forget(key)
			worker.queue.Free(key)
		}
	}
}

// Wake requeues every Work that the hold has refused: there is no hold any
// more.
func (r *Reconciler) Wake() {
	r.workers.releaseAll(func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnRetry })
}

var _ members.Handler = (*Reconciler)(nil)

// Proven implements members.Handler.
func (r *Reconciler) Proven(cluster string) {
	r.workers.parts.returns.Note(cluster, r.opts.Clock.Now()) // before a Work is tried again, which goes by it
	r.workers.release(cluster, func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnProof || c.Event == waitqueue.OnRetry })
}

// Synced implements members.Handler.
func (r *Reconciler) Synced(cluster string, gvk schema.GroupVersionKind) {
	r.workers.release(cluster, func(c waitqueue.Cause) bool { return c == waitqueue.Cause{Event: waitqueue.OnSync, Kind: gvk} })
}

// KindsChanged implements members.Handler.
func (r *Reconciler) KindsChanged(cluster string) {
	r.workers.release(cluster, func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnKinds })
}

// Changed implements members.Handler. A member may write any annotation, so an object
// can only name Works of the member's own cluster.
func (r *Reconciler) Changed(cluster string, observed *members.Observed) {
	if observed.Work.Namespace != workv1alpha2.ExecutionNamespace(cluster) {
		return
	}
	if worker := r.workers.of(cluster); worker != nil {
		worker.queue.Add(observed.Work)
	}
}
