// Package workrename moves Works to new names without their objects leaving the cluster meanwhile.
//
// In go a Work and the one of its former name, both on the hub. The Work gets the status
// that the former one had, and the former one goes without anybody being asked to do
// anything about its objects: it is suspended and let go of before it is deleted, so that
// no loop and no agent of any version discards what it has in the member. Each step can be
// interrupted, and is done again from where it was. It never makes a Work and never talks
// to a member.
package workrename

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Succession hands Works over. Use New.
type Succession struct {
	hub   client.Client
	wrote *writecache.Cache[*workv1alpha1.Work]
}

// New returns a Succession. What it writes goes into wrote.
func New(hub client.Client, wrote *writecache.Cache[*workv1alpha1.Work]) Succession {
	return Succession{hub: hub, wrote: wrote}
}

// Rename has the Work that stands under the name of planned take the place of the one
// that it was under its former name, if that is still there.
func (s Succession) Rename(ctx context.Context, planned *workv1alpha1.Work, former string) error {
	was, found, err := s.find(ctx, client.ObjectKey{Namespace: planned.Namespace, Name: former})
	if err != nil || !found || !plan.Succeeds(planned, was) {
		return err
	}
	work, found, err := s.find(ctx, client.ObjectKeyFromObject(planned))
	if err != nil || !found || !plan.Succeeds(work, was) {
		return err
	}
	return s.Take(ctx, work, was)
}

// find returns a Work, and false if there is none. It is shared with the cache.
func (s Succession) find(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, bool, error) {
	cached := &workv1alpha1.Work{}
	err := s.hub.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("read work %s: %w", key, err)
	}
	work, found := s.wrote.Latest(key, cached, err == nil)
	return work, found, nil
}

// Take has work, as the hub has it, take the place of former. What was read before
// somebody else wrote it is a conflict, and looked at again.
func (s Succession) Take(ctx context.Context, work, former *workv1alpha1.Work) error {
	if err := s.inherit(ctx, work, former); err != nil {
		return err
	}
	if s.wrote.Leaving(former) && len(former.Finalizers) == 0 {
		return nil
	}
	released, err := s.release(ctx, former)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	err = s.hub.Delete(ctx, &workv1alpha1.Work{ObjectMeta: released.ObjectMeta}, client.Preconditions{UID: ptr.To(released.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete work %s, which has another name now: %w", client.ObjectKeyFromObject(former), err)
	}
	s.wrote.Deleted(released)
	log.FromContext(ctx).Info("Renamed a work", "namespace", work.Namespace, "work", work.Name, "formerly", former.Name)
	return nil
}

// inherit gives a Work of which nothing has been reported yet the status of the former
// one.
func (s Succession) inherit(ctx context.Context, work, former *workv1alpha1.Work) error {
	if len(work.Status.Conditions) > 0 || len(work.Status.ManifestStatuses) > 0 || len(work.Status.Applied) > 0 {
		return nil
	}
	successor := work.DeepCopy()
	successor.Status = *plan.Inherited(work, former, members.Hash)
	err := s.hub.Status().Patch(ctx, successor, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("have work %s inherit the status of %s: %w", client.ObjectKeyFromObject(work), former.Name, err)
	}
	s.wrote.Wrote(successor)
	return nil
}

// release has nobody do anything about the objects of a Work, whatever becomes of it.
func (s Succession) release(ctx context.Context, former *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	at := slices.Index(former.Finalizers, workv1alpha2.ExecutionControllerFinalizer)
	if at < 0 && ptr.Deref(former.Spec.SuspendDispatching, false) {
		return former, nil
	}
	out := former.DeepCopy()
	out.Spec.SuspendDispatching = ptr.To(true)
	if at >= 0 {
		out.Finalizers = slices.Delete(out.Finalizers, at, at+1)
	}
	err := s.hub.Patch(ctx, out, client.MergeFromWithOptions(former, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("let go of work %s, which has another name now: %w", client.ObjectKeyFromObject(former), err)
	}
	s.wrote.Wrote(out)
	return out, nil
}
