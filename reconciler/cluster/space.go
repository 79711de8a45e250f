package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/taints"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

const (
	// leaving is how often a cluster that is being unjoined is checked.
	leaving = 500 * time.Millisecond
	// stale is when to retry after somebody else has changed the object meanwhile.
	stale = 50 * time.Millisecond
)

// spaces creates and removes the execution namespaces of clusters.
type spaces struct {
	hub    client.Client
	live   client.Reader
	events loop.Recorder
}

// ensure creates the execution namespace.
func (e spaces) ensure(ctx context.Context, s *state) (loop.Next, error) {
	name := workv1alpha2.ExecutionNamespace(s.cluster.Name)
	namespace := &corev1.Namespace{}
	err := e.hub.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil && namespace.DeletionTimestamp.IsZero():
		return loop.Next{}, nil
	case err == nil:
		return loop.Next{After: leaving}, nil // its end brings the cluster back
	case !apierrors.IsNotFound(err):
		return loop.Next{}, fmt.Errorf("read namespace %s: %w", name, err)
	}
	err = e.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{workv1alpha2.KarmadaSystemLabel: workv1alpha2.KarmadaSystemLabelValue},
	}})
	if apierrors.IsAlreadyExists(err) {
		return loop.Next{}, nil
	}
	if err != nil {
		e.events.Event(s.cluster, corev1.EventTypeWarning, clusterv1alpha1.EventReasonCreateExecutionSpaceFailed, err.Error())
		return loop.Next{}, fmt.Errorf("create namespace %s: %w", name, err)
	}
	log.FromContext(ctx).Info("Created the execution namespace", "namespace", name)
	return loop.Next{}, nil
}

// syncTaints writes the finalizer and the taints that go with the condition Ready. A
// new cluster is not tainted before something is known about it: until then it
// serves no kind that anything could be placed for.
func (r *Reconciler) syncTaints(ctx context.Context, s *state) (loop.Next, error) {
	updated := s.cluster.DeepCopy()
	changed := controllerutil.AddFinalizer(updated, clusterv1alpha1.ClusterControllerFinalizer)
	condition := meta.FindStatusCondition(s.status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if condition != nil || s.cluster.Spec.SyncMode != clusterv1alpha1.Push {
		updated.Spec.Taints = taints.ByReadiness(s.cluster.Spec.Taints, condition, metav1.NewTime(r.opts.Clock.Now()))
	}
	if !changed && equality.Semantic.DeepEqual(s.cluster.Spec.Taints, updated.Spec.Taints) {
		return loop.Next{}, nil
	}
	// Taints are a list that users edit too: what was read must not have changed.
	patch := client.MergeFromWithOptions(s.cluster, client.MergeFromWithOptimisticLock{})
	switch err := r.hub.Patch(ctx, updated, patch); {
	case apierrors.IsNotFound(err):
		return loop.Next{Done: true}, nil
	case apierrors.IsConflict(err):
		return loop.Next{Done: true, After: stale}, nil
	case err != nil:
		return loop.Next{}, fmt.Errorf("write finalizer and taints of cluster %s: %w", s.cluster.Name, err)
	}
	r.wrote.Wrote(updated)
	s.cluster = updated
	return loop.Next{}, nil
}

// leave removes a cluster's finalizer once no Work of it is left, none can come, and no binding
// names it any more.
func (r *Reconciler) leave(ctx context.Context, s *state) (loop.Next, error) {
	if !controllerutil.ContainsFinalizer(s.cluster, clusterv1alpha1.ClusterControllerFinalizer) {
		return loop.Next{}, nil
	}
	if err := giveUp(ctx, r.hub, s.cluster); err != nil {
		return loop.Next{}, err
	}
	empty, err := r.spaces.clear(ctx, s.cluster)
	if err != nil || !empty {
		return loop.Next{After: leaving}, err
	}
	named, err := isNamed(ctx, r.hub, s.cluster.Name)
	if err != nil || named {
		return loop.Next{After: leaving}, err
	}
	if member, ok := r.registry.Get(s.cluster.Name); ok {
		r.claim.release(ctx, member)
	}
	updated := s.cluster.DeepCopy()
	controllerutil.RemoveFinalizer(updated, clusterv1alpha1.ClusterControllerFinalizer)
	patch := client.MergeFromWithOptions(s.cluster, client.MergeFromWithOptimisticLock{})
	switch err := r.hub.Patch(ctx, updated, patch); {
	case apierrors.IsConflict(err):
		return loop.Next{After: leaving}, nil
	case client.IgnoreNotFound(err) != nil:
		return loop.Next{}, fmt.Errorf("let go of cluster %s: %w", s.cluster.Name, err)
	}
	log.FromContext(ctx).Info("Let go of the cluster")
	return loop.Next{}, nil
}

// giveUp removes the finalizers of the Works of a cluster in pull mode while its agent does not
// report that it is healthy: nobody would remove their objects, and those stay there.
func giveUp(ctx context.Context, hub client.Client, cluster *clusterv1alpha1.Cluster) error {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull || ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == clusterv1alpha1.ClusterAnswersAgainReason) {
		return nil
	}
	var works workv1alpha1.WorkList
	if err := hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the works of cluster %s: %w", cluster.Name, err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		if !controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionControllerFinalizer) {
			continue
		}
		updated := work.DeepCopy()
		controllerutil.RemoveFinalizer(updated, workv1alpha2.ExecutionControllerFinalizer)
		err := hub.Patch(ctx, updated, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("let go of work %s of cluster %s: %w", work.Name, cluster.Name, err)
		}
		log.FromContext(ctx).Info("Let go of a work that nobody would remove", "work", work.Name)
	}
	return nil
}

// clear deletes the execution namespace and the Works in it, and reports whether none
// is left: nothing comes to a namespace that is being deleted. That has its own end
// seconds later, when housekeeping has looked for what else is there.
func (e spaces) clear(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	name := workv1alpha2.ExecutionNamespace(cluster.Name)
	namespace := &corev1.Namespace{}
	err := e.hub.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	if namespace.DeletionTimestamp.IsZero() {
		err := removeSpace(ctx, e.hub, namespace)
		if err != nil {
			e.events.Event(cluster, corev1.EventTypeWarning, clusterv1alpha1.EventReasonRemoveExecutionSpaceFailed, err.Error())
		}
		return false, err
	}
	works := &workv1alpha1.WorkList{}
	if err := e.hub.List(ctx, works, client.InNamespace(name), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the works of cluster %s: %w", cluster.Name, err)
	}
	if slices.ContainsFunc(works.Items, func(w workv1alpha1.Work) bool { return w.DeletionTimestamp.IsZero() }) {
		if err := e.hub.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(name)); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("delete the works of cluster %s: %w", cluster.Name, err)
		}
		return false, nil
	}
	if len(works.Items) > 0 {
		return false, nil
	}
	// The cache may lag behind what was made just before the namespace was deleted.
	if err := e.live.List(ctx, works, client.InNamespace(name), client.Limit(1)); err != nil {
		return false, fmt.Errorf("list the works of cluster %s: %w", cluster.Name, err)
	}
	return len(works.Items) == 0, nil
}

// removeSpace deletes an execution namespace.
func removeSpace(ctx context.Context, hub client.Client, namespace *corev1.Namespace) error {
	name := namespace.Name
	err := hub.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.Preconditions{UID: ptr.To(namespace.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	log.FromContext(ctx).Info("Removing the execution namespace", "namespace", name)
	return nil
}

// isNamed reports whether a binding still names the cluster.
func isNamed(ctx context.Context, hub client.Client, cluster string) (bool, error) {
	found := false
	err := bindings.Each(ctx, hub, func(b workv1alpha2.Binding) {
		for _, target := range b.BindingSpec().Clusters {
			found = found || target.Name == cluster
		}
	})
	return found, err
}
