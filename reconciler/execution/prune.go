package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// pruner removes objects that no manifest of their Work names any more.
type pruner struct {
	manifests leftovers
	remover   *remover
}

// leftovers returns the former manifests of Works.
type leftovers interface {
	Leftovers(work *workv1alpha1.Work, asked []manifest.Manifest) []manifest.Manifest
	Removed(work client.ObjectKey)
}

// prune removes the objects that no manifest names any more, once the member has all that
// manifests name: an object that was renamed is not removed before the new one exists.
func (t *pruner) prune(ctx context.Context, s *state) (loop.Next, error) {
	asked := make([]manifest.Manifest, len(s.objects))
	for i := range s.objects {
		asked[i] = s.objects[i].Manifest
	}
	s.left = t.manifests.Leftovers(s.work, asked)
	if len(s.left) == 0 || suspended(s.work) || slices.ContainsFunc(s.failed(), func(err error) bool { return err != nil && !skiperrors.IsAsItIs(err) }) {
		return loop.Next{}, nil
	}
	var remaining []manifest.Manifest
	for i := range s.left {
		m := &s.left[i]
		err := t.remover.remove(ctx, s, m)
		if b := (*waitqueue.Blocked)(nil); errors.As(err, &b) {
			s.blocked = b
			return loop.Next{Done: true}, nil
		}
		if err == nil {
			continue
		}
		remaining = append(remaining, *m)
		if skiperrors.IsTerminating(err) && t.remover.hopeful(s) {
			s.blocked = &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: err}
			continue
		}
		s.stuck = errors.Join(s.stuck, fmt.Errorf("remove %s, which is not asked for any more: %w", m.Title(), t.remover.explain(ctx, s, m, err)))
	}
	if s.left = remaining; len(remaining) == 0 {
		t.manifests.Removed(s.key)
	}
	return loop.Next{}, nil
}
