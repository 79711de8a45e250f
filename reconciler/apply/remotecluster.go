package apply

import (
	"context"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/finalization"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/remotecluster"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// applyToRemoteCluster is the phase that does for a Kustomization with spec.kubeConfig, in that cluster, what the phases after it do on the hub, and
// ends the run. Nothing is carried from there to other clusters, taken over, or switched.
func (r *Reconciler) applyToRemoteCluster(ctx context.Context, s *state) (loop.Next, error) {
	if s.ks.Spec.KubeConfig == nil {
		return loop.Next{}, nil
	}
	if s.waiting.aside = " " + inventory.PlaceOf(s.ks.Status).String(); s.current && (!health.Checked(s.ks) || readyAt(s)) {
		return loop.Next{Done: true}, nil
	}
	at, err := r.prerequisites.targets.Of(ctx, s.ks, s.actor)
	if apierrors.IsForbidden(err) {
		err = loop.Waiting(applier.ReasonForbidden, intervals.Retry(s.ks), r.actors.Explained(ctx, s.actor, err))
	}
	if err != nil {
		return loop.Next{}, err
	}
	s.diff.at = *at
	next, err := loop.Run(ctx, s,
		loop.Unless((*state).isCurrent, stagemetrics.Phases(r.counts.Apply, places.Phase(r.observe), r.dryRun, guardRemoteDeletions(*r.opts.Brake), r.finalizer.reportLeftBehind, r.switcher.recordInventory, r.apply, pruneRemote)),
		places.Phase(r.assessHealth),
		reportHealth,
	)
	next.Done, s.waiting.aside = true, " "+at.String()
	s.waiting.text = strings.Replace(s.waiting.text, s.source.revision, s.source.revision+s.waiting.aside, 1)
	return next, remotecluster.Explained(s.ks, at, err)
}

// guardRemoteDeletions returns the phase that finds out what a revision deletes in the cluster of spec.kubeConfig, and refuses it if that is too much.
func guardRemoteDeletions(brake inventory.Brake) loop.Phase[state] {
	return func(_ context.Context, s *state) (loop.Next, error) {
		if s.stale.known = true; s.ks.Spec.Prune {
			s.stale.Deleted = applier.PrunableRemote(s.diff.Removed, s.seen)
		}
		err := remotecluster.Removal{
			Owned: s.diff.owned, Deleted: s.stale.Deleted, Desired: s.desired, May: s.allowance(s.source.revision, nil),
			Revision: s.source.revision, Stands: s.ks.Status.LastAppliedRevision == s.source.revision,
		}.Check(brake)
		s.stale.refused = err != nil
		return loop.Next{}, err
	}
}

// reportLeftBehind reports objects that stay in another cluster, or on the hub, as spec.kubeConfig is another one.
func (r finalizer) reportLeftBehind(ctx context.Context, s *state) (loop.Next, error) {
	if text := remotecluster.Left(s.ks.Status, s.diff.at.Place); text != "" {
		r.emit(ctx, s.ks, s, finalization.Notice{Type: corev1.EventTypeWarning, Reason: remotecluster.ReasonLeftBehind, Message: text})
	}
	return loop.Next{}, nil
}

// pruneRemote deletes in the cluster of spec.kubeConfig what left the revision.
func pruneRemote(ctx context.Context, s *state) (loop.Next, error) {
	s.writes, s.switchover.done = whole, s.switchover.resumed
	if err := s.diff.at.Applier.Prune(ctx, s.owner, s.diff.at, s.stale.Deleted, s.seen); err != nil {
		s.retain(s.stale.Deleted)
		return loop.Next{}, loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), err)
	}
	return loop.Next{}, nil
}
