package apply

import (
	"context"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/endings"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/outside"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// outside is the phase that does for a Kustomization with spec.kubeConfig, in that cluster, what the phases after it do on the hub, and
// ends the run. Nothing is carried from there to other clusters, taken over, or switched.
func (r *Reconciler) outside(ctx context.Context, s *state) (loop.Next, error) {
	if s.ks.Spec.KubeConfig == nil {
		return loop.Next{}, nil
	}
	if s.waiting.aside = " " + inventory.PlaceOf(s.ks.Status).String(); s.current && (!checksHealth(s) || readyAt(s)) {
		return loop.Next{Done: true}, nil
	}
	at, err := r.before.targets.Of(ctx, s.ks, s.actor)
	if apierrors.IsForbidden(err) {
		err = loop.Waiting(applier.ReasonForbidden, intervals.Retry(s.ks), r.actors.Explained(ctx, s.actor, err))
	}
	if err != nil {
		return loop.Next{}, err
	}
	s.diff.at = *at
	next, err := loop.Run(ctx, s,
		fresh(stagemetrics.Phases(r.counts.Apply, computing(r.observe), r.check, giveUp(*r.opts.Brake), r.remover.moved, r.switcher.begin, r.apply, drop)),
		computing(r.assess),
		healthy,
	)
	next.Done, s.waiting.aside = true, " "+at.String()
	s.waiting.text = strings.Replace(s.waiting.text, s.source.revision, s.source.revision+s.waiting.aside, 1)
	return next, outside.Explained(s.ks, at, err)
}

// giveUp returns the phase that finds out what a revision deletes in the cluster of spec.kubeConfig, and refuses it if that is too much.
func giveUp(brake inventory.Brake) loop.Phase[state] {
	return func(_ context.Context, s *state) (loop.Next, error) {
		if s.leaving.known = true; s.ks.Spec.Prune {
			s.leaving.Deleted = applier.PrunableOutside(s.diff.Removed, s.seen)
		}
		err := outside.Removal{
			Owned: s.diff.owned, Deleted: s.leaving.Deleted, Desired: s.desired, May: s.allowance(s.source.revision, nil),
			Revision: s.source.revision, Stands: s.ks.Status.LastAppliedRevision == s.source.revision,
		}.Check(brake)
		s.leaving.refused = err != nil
		return loop.Next{}, err
	}
}

// moved tells of objects that stay in another cluster, or on the hub, as spec.kubeConfig is another one.
func (r remover) moved(ctx context.Context, s *state) (loop.Next, error) {
	if text := outside.Left(s.ks.Status, s.diff.at.Place); text != "" {
		r.emit(ctx, s, endings.Notice{Type: corev1.EventTypeWarning, Reason: outside.ReasonLeftBehind, Message: text})
	}
	return loop.Next{}, nil
}

// drop deletes in the cluster of spec.kubeConfig what left the revision.
func drop(ctx context.Context, s *state) (loop.Next, error) {
	s.writes, s.switched.done = whole, s.switched.resumed
	if err := s.diff.at.Applier.Prune(ctx, s.owner, s.diff.at, s.leaving.Deleted, s.seen); err != nil {
		s.keep(s.leaving.Deleted)
		return loop.Next{}, loop.Waiting(meta.PruneFailedReason, intervals.Retry(s.ks), err)
	}
	return loop.Next{}, nil
}
