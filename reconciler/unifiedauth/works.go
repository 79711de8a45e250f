package unifiedauth

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// works writes the Works that bring rights, and knows what it wrote last.
type works struct {
	hub   client.Client
	wrote *writecache.Cache[*workv1alpha1.Work]
}

// open reports whether the cluster has room for Works.
func (w works) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if !cluster.DeletionTimestamp.IsZero() {
		return false, nil
	}
	space := &corev1.Namespace{}
	err := w.hub.Get(ctx, client.ObjectKey{Name: workv1alpha2.ExecutionNamespace(cluster.Name)}, space, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil // it is heard of when it is made
	}
	if err != nil {
		return false, fmt.Errorf("read the execution namespace of cluster %s: %w", cluster.Name, err)
	}
	return space.DeletionTimestamp.IsZero(), nil
}

// put makes one Work what is planned, and reports whether it wrote.
func (w works) put(ctx context.Context, planned *workv1alpha1.Work) (bool, error) {
	key := client.ObjectKeyFromObject(planned)
	cached := &workv1alpha1.Work{}
	err := w.hub.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read work %s: %w", key, err)
	}
	current, found := w.wrote.Latest(key, cached, err == nil)
	if !found {
		return w.create(ctx, planned)
	}
	if !current.DeletionTimestamp.IsZero() {
		return false, nil // its end brings the cluster back
	}
	desired := current.DeepCopy()
	if !brought(desired, planned) {
		return false, nil
	}
	patch := client.MergeFrom(current)
	if current.Annotations[workv1alpha2.AppliedByAnnotation] != "" {
		patch = client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}) // what he writes meanwhile stays his
	}
	if err := w.hub.Patch(ctx, desired, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil // its end brings the cluster back
		}
		return false, fmt.Errorf("change work %s: %w", key, err)
	}
	w.wrote.Wrote(desired)
	log.FromContext(ctx).Info("Changed what users may do in a member", "work", desired.Name)
	return true, nil
}

// brought makes a Work what is planned and reports whether that changed it.
func brought(work, planned *workv1alpha1.Work) bool {
	changed := false
	if _, has := work.Annotations[workv1alpha2.AppliedByAnnotation]; has {
		delete(work.Annotations, workv1alpha2.AppliedByAnnotation) // it is the control plane's own
		changed = true
	}
	for key, value := range planned.Labels {
		if work.Labels[key] != value {
			metav1.SetMetaDataLabel(&work.ObjectMeta, key, value)
			changed = true
		}
	}
	for key, value := range planned.Annotations {
		if work.Annotations[key] != value {
			metav1.SetMetaDataAnnotation(&work.ObjectMeta, key, value)
			changed = true
		}
	}
	same := func(a, b workv1alpha1.Manifest) bool { return members.SameJSON(a.RawExtension, b.RawExtension) }
	if !slices.EqualFunc(work.Spec.Workload.Manifests, planned.Spec.Workload.Manifests, same) {
		work.Spec.Workload = planned.Spec.Workload
		changed = true
	}
	return enforce(work, planned) || changed
}

// enforce has a Work dispatched, and removed with its cluster, whatever somebody set, and reports
// whether it changed anything: rights that are taken away would otherwise stay in the member.
func enforce(work, planned *workv1alpha1.Work) bool {
	changed := false
	if ptr.Deref(work.Spec.SuspendDispatching, false) || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
		work.Spec.SuspendDispatching, work.Spec.PreserveResourcesOnDeletion = nil, nil
		changed = true
	}
	for _, finalizer := range planned.Finalizers {
		changed = controllerutil.AddFinalizer(work, finalizer) || changed
	}
	if !equality.Semantic.DeepEqual(work.OwnerReferences, planned.OwnerReferences) {
		work.OwnerReferences = planned.OwnerReferences
		changed = true
	}
	return changed
}

func (w works) create(ctx context.Context, planned *workv1alpha1.Work) (bool, error) {
	work := planned.DeepCopy()
	err := w.hub.Create(ctx, work)
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, nil // the cache lags: an event of the Work or of the execution namespace comes
	case err != nil:
		return false, fmt.Errorf("create work %s: %w", client.ObjectKeyFromObject(planned), err)
	}
	w.wrote.Wrote(work)
	log.FromContext(ctx).Info("Let users into a member", "work", work.Name)
	return true, nil
}

// remove deletes a Work of the cluster's, if it is there.
func (w works) remove(ctx context.Context, cluster *clusterv1alpha1.Cluster, name string) error {
	work := &workv1alpha1.Work{}
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster.Name), Name: name}
	err := w.hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy)
	latest, found := w.wrote.Latest(key, work, err == nil)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read work %s: %w", key, err)
	}
	if !found || !metav1.IsControlledBy(latest, cluster) || !latest.DeletionTimestamp.IsZero() {
		return nil
	}
	err = w.hub.Delete(ctx, latest.DeepCopy(), client.Preconditions{UID: ptr.To(latest.UID)})
	if err != nil && !apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("Took rights from a member", "work", key.String())
	return nil
}
