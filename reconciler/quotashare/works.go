package quotashare

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// What only others mend: errTaken means that a Work is another's, and errRefused that a cluster
// does not take it.
var (
	errTaken   = errors.New("it is left as it is until then")
	errRefused = errors.New("it does not have the share")
)

// works writes the Works that bring shares, and knows what it wrote last.
type works struct {
	hub   client.Client
	wrote *writecache.Cache[*workv1alpha1.Work]
}

// find returns the Work under a key as it was last seen or written, and false if there is
// none. It is shared: it must not be changed.
func (w works) find(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, bool, error) {
	cached := &workv1alpha1.Work{}
	err := w.hub.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("read work %s: %w", key, err)
	}
	work, found := w.wrote.Latest(key, cached, err == nil)
	return work, found, nil
}

// put makes the Work of a quota's share what is planned.
//
// Errors: errTaken where the Work is another's, errRefused where it is as planned and the
// cluster does not have it.
func (w works) put(ctx context.Context, quota client.ObjectKey, planned *workv1alpha1.Work) error {
	current, found, err := w.find(ctx, client.ObjectKeyFromObject(planned))
	switch owner, ours := ownerOf(current, found); {
	case err != nil:
		return err
	case !found:
		return w.create(ctx, planned)
	case w.wrote.Leaving(current):
		return nil // its end brings the quota back
	case !ours || owner != quota:
		return taken(current)
	}
	desired, changed := merged(current, planned)
	if !changed {
		if why := refusal(current); why != "" {
			return fmt.Errorf("%w: %s", errRefused, why)
		}
		return nil
	}
	// What somebody writes meanwhile is not ours: a binding may take the Work.
	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := w.hub.Patch(ctx, desired, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // its end brings the quota back
		}
		return fmt.Errorf("change work %s: %w", client.ObjectKeyFromObject(current), err)
	}
	w.wrote.Wrote(desired)
	log.FromContext(ctx).Info("Changed a cluster's share of a quota", "work", client.ObjectKeyFromObject(desired))
	return nil
}

// refusal is why the cluster does not have what a Work says now; empty: it has, or has not tried
// yet.
func refusal(work *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != work.Generation {
		return ""
	}
	return c.Message
}

func ownerOf(work *workv1alpha1.Work, found bool) (client.ObjectKey, bool) {
	if !found {
		return client.ObjectKey{}, false
	}
	return plan.ShareOf(work)
}

// taken says what to do about a Work that has the name of a share's. One of a binding goes
// with that, or the binding is to be seen in a moment.
func taken(work *workv1alpha1.Work) error {
	if binding := work.Annotations[workv1alpha2.ResourceBindingNameAnnotationKey]; binding != "" {
		return fmt.Errorf("work %s is of the binding %s/%s still: %w", client.ObjectKeyFromObject(work),
			work.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey], binding, errTaken)
	}
	return fmt.Errorf("work %s has the name that the share's has, and is none of the control plane's: delete it: %w", client.ObjectKeyFromObject(work), errTaken)
}

// unplanned are the annotations by which Works say more than a share has to say. Who applied
// it is the control plane.
var unplanned = []string{
	workv1alpha2.AppliedByAnnotation, workv1alpha2.DriftAnnotation, propagation.FaultAnnotation,
	policyv1alpha1.AppliedOverrides, policyv1alpha1.AppliedClusterOverrides,
}

// merged returns current with what is planned in it, and whether that differs. Labels,
// annotations and finalizers of others stay.
func merged(current, planned *workv1alpha1.Work) (*workv1alpha1.Work, bool) {
	planned = plan.Continued(planned, current)
	if plan.Same(planned, current) {
		return current, false
	}
	out := current.DeepCopy()
	out.Spec = *planned.Spec.DeepCopy()
	maps.Copy(out.Labels, planned.Labels) // it has those by which it was found
	for _, key := range unplanned {
		delete(out.Annotations, key)
	}
	for _, finalizer := range planned.Finalizers {
		controllerutil.AddFinalizer(out, finalizer)
	}
	return out, true
}

func (w works) create(ctx context.Context, planned *workv1alpha1.Work) error {
	work := planned.DeepCopy()
	err := w.hub.Create(ctx, work)
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the cache lags: an event of the Work or of the execution namespace comes
	case err != nil:
		return fmt.Errorf("create work %s: %w", client.ObjectKeyFromObject(planned), err)
	}
	w.wrote.Wrote(work)
	log.FromContext(ctx).Info("Gave a cluster a share of a quota", "work", client.ObjectKeyFromObject(work))
	return nil
}

// remove deletes the Work that brings a quota's share to a cluster, if there is one.
func (w works) remove(ctx context.Context, quota client.ObjectKey, cluster string) error {
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: plan.ShareName(quota)}
	work, found, err := w.find(ctx, key)
	if err != nil || !found || w.wrote.Leaving(work) {
		return err
	}
	if owner, ours := plan.ShareOf(work); !ours || owner != quota {
		return nil
	}
	// As it was seen: a binding may take it meanwhile.
	err = w.hub.Delete(ctx, &workv1alpha1.Work{ObjectMeta: work.ObjectMeta}, client.Preconditions{UID: ptr.To(work.UID), ResourceVersion: ptr.To(work.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete work %s: %w", key, err)
	}
	w.wrote.Deleted(work)
	log.FromContext(ctx).Info("Took a cluster's share of a quota back", "work", key)
	return nil
}
