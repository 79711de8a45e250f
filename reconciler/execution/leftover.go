package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// What a Work's manifests no longer name is removed from the member. The Work's
// status says what was there: an entry stays until its object is gone, so that
// this survives a restart and a member that is away. What was sent and did not get
// into the status before the manifest went is remembered by the apply cache.

// leftovers returns the objects that the Work had sent and that none of its
// manifests names any more.
func (l *applyCache) leftovers(work *workv1alpha1.Work, parsed []manifest) []manifest {
	var out []manifest
	add := func(m manifest) {
		if !slices.ContainsFunc(parsed, m.same) && !slices.ContainsFunc(out, m.same) {
			out = append(out, m)
		}
	}
	for i := range work.Status.ManifestStatuses {
		add(formerly(&work.Status.ManifestStatuses[i].Identifier))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.former[client.ObjectKeyFromObject(work)]; f.uid == work.UID {
		for _, m := range f.manifests {
			add(m)
		}
	}
	return out
}

// formerly returns the manifest that an entry of a Work's status was about.
func formerly(id *workv1alpha1.ResourceIdentifier) manifest {
	return manifest{
		ordinal: id.Ordinal,
		gvk:     schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind},
		key:     types.NamespacedName{Namespace: id.Namespace, Name: id.Name},
	}
}

// former are manifests that a Work had and has no longer.
type former struct {
	uid       types.UID
	manifests []manifest
}

// outdate remembers the manifests of one generation that the next does not have.
// The lock is held.
func (l *applyCache) outdate(key client.ObjectKey, was parsed, now []manifest) {
	f := l.former[key]
	if f.uid != was.uid {
		f = former{uid: was.uid}
	}
	for _, m := range was.manifests {
		if m.err == nil && !slices.ContainsFunc(now, m.same) && !slices.ContainsFunc(f.manifests, m.same) {
			f.manifests = append(f.manifests, m)
		}
	}
	if len(f.manifests) > 0 {
		l.former[key] = f
	}
}

// removed forgets what a Work had once.
func (l *applyCache) removed(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.former, key)
}

// other reports whether an entry of the Work's status tells that the record of what
// was applied is about another object than the manifest of that place now.
func other(work *workv1alpha1.Work, m *manifest) bool {
	return slices.ContainsFunc(work.Status.ManifestStatuses, func(s workv1alpha1.ManifestStatus) bool {
		return s.Identifier.Ordinal == m.ordinal && !m.same(formerly(&s.Identifier))
	})
}

// tidier removes what the Works of a lane no longer ask for.
type tidier struct{ *lane }

// run removes what the Work no longer asks for, once the member has all that it
// does ask for: an object that was renamed is not removed before there is another.
func (l tidier) run(ctx context.Context, s *state) (loop.Next, error) {
	s.left = l.applied.leftovers(s.work, s.parsed)
	if len(s.left) == 0 || suspended(s.work) || slices.ContainsFunc(s.failed, func(err error) bool { return err != nil && !outcome.IsAsItIs(err) }) {
		return loop.Next{}, nil
	}
	var kept []manifest
	for i := range s.left {
		m := &s.left[i]
		err := l.discardOne(ctx, s, m)
		if b := (*waitqueue.Blocked)(nil); errors.As(err, &b) {
			s.blocked = b
			return loop.Next{Done: true}, nil
		}
		if err == nil {
			continue
		}
		kept = append(kept, *m)
		if outcome.IsTerminating(err) && (warden{l.lane}).hopeful(s) {
			s.blocked = &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: err}
			continue
		}
		s.stuck = errors.Join(s.stuck, fmt.Errorf("remove %s, which is not asked for any more: %w", m.title(), warden{l.lane}.explain(ctx, s, m, err)))
	}
	if s.left = kept; len(kept) == 0 {
		l.applied.removed(s.key)
	}
	return loop.Next{}, nil
}
