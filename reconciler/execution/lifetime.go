package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
	"github.com/flotilla-io/flotilla/reconciler/execution/live"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
	"github.com/flotilla-io/flotilla/reconciler/execution/workfinalizer"
)

// lifetime keeps Works until their objects are gone, and ends them then.
type lifetime struct {
	finalizer workFinalizer
	manifests interface {
		asked
		leftovers
	}
	remover *remover
	last    *deletionrecheck.Judge
}

// workFinalizer keeps Works until their objects are gone, and ends them.
type workFinalizer interface {
	Add(ctx context.Context, work *workv1alpha1.Work) (*workv1alpha1.Work, error)
	End(ctx context.Context, work *workv1alpha1.Work) error
	Remove(ctx context.Context, work *workv1alpha1.Work) error
}

// addFinalizer puts the loop's finalizer on a Work that lacks it, so that its objects are deleted
// with it. Works that Flotilla creates have it from the start.
func (l *lifetime) addFinalizer(ctx context.Context, s *state) (loop.Next, error) {
	if workfinalizer.Has(s.work) || suspended(s.work) {
		return loop.Next{}, nil
	}
	work, err := l.finalizer.Add(ctx, s.work)
	if err != nil {
		return loop.Next{}, err
	}
	s.work = work
	return loop.Next{}, nil
}

// deleteObjects deletes the objects of a Work that is being deleted, or releases them if they have to stay.
// It does nothing in the member if the Cluster is gone, or is being unjoined and out of reach.
func (l *lifetime) deleteObjects(ctx context.Context, s *state) (loop.Next, error) {
	if !workfinalizer.Has(s.work) {
		return loop.Next{Done: true}, nil
	}
	if s.cluster == nil {
		return loop.Next{}, nil
	}
	if s.member == nil {
		if s.leaves() && !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			return loop.Next{}, nil
		}
		err := &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnProof}, After: waitqueue.SafetyNet, Err: fmt.Errorf("cluster %s is not connected", s.cluster.Name)}
		l.last.Tried(s.key, err)
		return loop.Next{}, err
	}
	if recalled(s.work) && !s.leaves() { // who recalled it ends it, once the next one is sure to come: else nobody would have the objects
		why := &skiperrors.Recalled{}
		s.stays = &stay{why: why}
		return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: waitqueue.SafetyNet, Err: why}
	}
	s.judged = l.remover.clock.Now()
	parsed := l.manifests.Of(s.work)
	parsed = slices.Concat(parsed, l.manifests.Leftovers(s.work, parsed))
	if err := deletionrecheck.IfThere(l.last.Keeps(ctx, s.work, s.cluster), func() (bool, error) { return live.Any(ctx, s.member, parsed) }); err != nil {
		if !deletionrecheck.Waits(err) {
			s.stays = &stay{why: err} // the binding loop wants the objects again if they are placed here by now
		}
		return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: deletionrecheck.Again(err), Err: err}
	}
	stays, err := l.removeAll(ctx, s, parsed)
	l.last.Tried(s.key, errors.Join(stays, err))
	if err != nil || stays == nil {
		return loop.Next{}, err
	}
	after := min(l.remover.tries.When(s.key), longestRemoval) // the watch starts a pass when the object is gone
	if !waitqueue.IsBlocked(stays) && !l.remover.hopeful(s) {
		s.stays = &stay{why: stays, deletes: s.beside} // from now on the Work shows that it is being deleted
	}
	return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: after, Err: stays}
}

// removeAll deletes all objects of a Work in the member. stays is why one of them is still there: one that people have
// to act on, or else the first that is terminating. err means that nothing is known.
func (l *lifetime) removeAll(ctx context.Context, s *state, parsed []manifest.Manifest) (stays, err error) {
	var refused error
	for i := range parsed {
		m := &parsed[i]
		if m.Err != nil {
			continue
		}
		err := l.remover.remove(ctx, s, m)
		switch {
		case skiperrors.IsHeld(err):
			return nil, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: waitqueue.SafetyNet, Err: err}
		case waitqueue.IsBlocked(err):
			return nil, err
		case skiperrors.IsTerminating(err) && stays == nil:
			stays = l.remover.explain(ctx, s, m, err)
		case !skiperrors.IsTerminating(err) && err != nil && refused == nil:
			refused = fmt.Errorf("remove %s %s: %w", m.GVK.Kind, m.Key, err)
		}
	}
	if refused != nil { // a person has to act
		return refused, nil
	}
	return stays, nil
}

// longestRemoval is the longest wait before a Work's removal is tried again: what blocks it
// may pass without an event of the watch.
const longestRemoval = 30 * time.Second

// removeFinalizer removes the finalizer of the Work, or, if its binding is being deleted, deletes the Work as well.
func (l *lifetime) removeFinalizer(ctx context.Context, s *state) (loop.Next, error) {
	if s.beside {
		return loop.Next{}, l.finalizer.End(ctx, s.work)
	}
	return loop.Next{}, l.finalizer.Remove(ctx, s.work)
}
