package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/runs"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// goneAfter is how often it is looked whether deleted objects are gone.
const goneAfter = time.Second

// finalize deletes what a Kustomization owns, where its deletion policy says
// so, and lets it go.
func (r *Reconciler) finalize(ctx context.Context, ks *kustomizev1.Kustomization) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(ks)
	r.switcher.end(ctx, key, nil)
	if !controllerutil.ContainsFinalizer(ks, kustomizev1.KustomizationFinalizer) {
		return reconcile.Result{}, nil
	}
	s := &state{ks: ks, owner: key, now: r.clock.Now(), last: r.lastApplied.of(key)}
	if inventory.Deletes(ks) {
		gone, err := r.remover.deleteOwned(ctx, s)
		if err == nil && s.leaving.Waits() {
			err = loop.Waiting(siblings.ReasonHandingOver, handoverPoll, errors.New(s.leaving.String()))
		}
		if err != nil && runs.Superseded(ctx) {
			return reconcile.Result{}, err
		}
		if err != nil {
			err = loop.As(s.clean(err, meta.PruneFailedReason), meta.PruneFailedReason)
			if err := r.conclude(ctx, s, err); err != nil {
				return reconcile.Result{}, err
			}
			return loop.Result(loop.Next{}, err)
		}
		if !gone {
			return reconcile.Result{RequeueAfter: goneAfter}, nil
		}
	}
	before := ks.DeepCopy()
	controllerutil.RemoveFinalizer(ks, kustomizev1.KustomizationFinalizer)
	err := r.deps.Hub.Patch(ctx, ks, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("remove the finalizer: %w", err)
	}
	r.forget(ctx, key)
	return reconcile.Result{}, nil
}

// remover deletes what a Kustomization leaves behind, by the rights of who applied it.
type remover struct {
	applier  *applier.Applier
	actors   *actors.Actors
	heritage *heritage
	live     client.Reader
	events   loop.Recorder
}

// deleteOwned deletes what the inventory holds, as whoever applied it. It returns
// false while objects whose end is to be waited for are still there. What the
// account may not delete stays, and an event says so: a Kustomization can always
// be deleted, and nothing goes by rights that its author lacks. What others of its source want
// is theirs.
func (r remover) deleteOwned(ctx context.Context, s *state) (bool, error) {
	owned, err := inventory.Read(s.ks.Status.Inventory)
	if err != nil || len(owned) == 0 {
		return true, err
	}
	if s.actor, err = r.actors.Of(s.ks); err != nil {
		return false, err
	}
	if orphaned, err := actors.Gone(ctx, r.live, s.actor.Identity); err != nil || orphaned {
		if orphaned {
			warn(ctx, r.events, s, fmt.Sprintf("the service account %s is gone: %d objects stay", s.actor.ServiceAccount, len(owned)))
		}
		return true, err
	}
	seen, err := r.applier.Observe(ctx, s.owner, owned)
	if err != nil {
		return false, err
	}
	if err := r.heritage.end(ctx, s, applier.Prunable(owned, seen)); err != nil {
		return false, err
	}
	doomed := s.leaving.Deleted
	err = r.applier.Prune(ctx, s.owner, s.actor, doomed, seen)
	var refusal *applier.Refusal
	if errors.As(err, &refusal) {
		warn(ctx, r.events, s, fmt.Sprintf("%d objects stay: %v", len(refusal.Findings), s.actor.Explained(err)))
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if s.ks.GetDeletionPolicy() != kustomizev1.DeletionPolicyWaitForTermination {
		return true, nil
	}
	return len(doomed) == 0 && !seen.AnyDeleting(owned) || s.now.After(s.ks.DeletionTimestamp.Add(s.ks.GetTimeout())), nil
}

// warn tells of what a deletion leaves behind.
func warn(ctx context.Context, events loop.Recorder, s *state, message string) {
	message = s.hide(message)
	events.Event(s.ks, corev1.EventTypeWarning, meta.PruneFailedReason, message)
	log.FromContext(ctx).Info(message, "reason", meta.PruneFailedReason)
}
