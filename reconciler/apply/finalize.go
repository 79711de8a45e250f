package apply

import (
	"context"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/runs"
	"github.com/flotilla-io/flotilla/reconciler/apply/finalization"
	"github.com/flotilla-io/flotilla/reconciler/apply/remotecluster"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// goneAfter is the pause between looks at whether deleted objects are gone.
const goneAfter = time.Second

// finalize deletes what a Kustomization owns, where its deletion policy says so, and then removes its finalizer.
func (r *Reconciler) finalize(ctx context.Context, ks *kustomizev1.Kustomization) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(ks)
	if !revisiongate.HandsOver(ks) {
		r.switcher.end(ctx, key, nil)
	}
	if !controllerutil.ContainsFinalizer(ks, kustomizev1.KustomizationFinalizer) {
		return reconcile.Result{}, nil
	}
	if inventory.Deletes(ks) {
		s := &state{ks: ks, owner: key, now: r.opts.Clock.Now(), last: r.lastApplied.of(key)}
		r.opts.Secrets.Learn(ks, &s.last.secrets)
		gone, err := r.finalizer.deleteObjects(ctx, s)
		if err != nil && runs.Superseded(ctx) {
			return reconcile.Result{}, err
		}
		if err != nil {
			err = loop.As(s.clean(err, meta.PruneFailedReason), meta.PruneFailedReason)
			if err := r.recordStatus(ctx, s, err); err != nil {
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

// finalizer deletes what a deleted Kustomization applied, and emits events about what stays.
type finalizer struct {
	finalization.Remover
	outside remotecluster.Remover
	events  loop.Recorder
}

// deleteObjects deletes what a Kustomization applied. False means that some of it is still there.
func (r finalizer) deleteObjects(ctx context.Context, s *state) (bool, error) {
	ends := r.End
	if inventory.PlaceOf(s.ks.Status) != (inventory.Place{}) {
		ends = r.outside.End
	}
	s.last.awaited.SetSource(inventory.SourceOf(s.ks))
	ending, err := ends(ctx, s.ks, s.now)
	s.actor, s.source.revision, s.stale.undecided = ending.Actor, ending.Revision, ending.Undecided
	for _, n := range ending.Notices(s.ks) {
		r.emit(ctx, s.ks, s, n)
	}
	for _, other := range ending.Along { // their own runs do not find any more what was deleted
		for _, n := range other.Notices(other.Of) {
			r.emit(ctx, other.Of, s, n)
		}
	}
	return ending.Gone, err
}

func (r finalizer) emit(ctx context.Context, about *kustomizev1.Kustomization, s *state, n finalization.Notice) {
	message := s.hide(n.Message)
	r.events.Event(about, n.Type, n.Reason, message)
	log.FromContext(ctx).Info(message, "reason", n.Reason)
}
