package dependency

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

const (
	// collisionPause is how long an object whose binding's name is taken waits
	// before it is looked at again.
	collisionPause = time.Minute
	// handOver is how soon a binding without users that waits for the
	// policy that is about to carry it is checked again.
	handOver = time.Second
	// longestHandOver is how long it waits in total: after that something keeps the policy
	// from it.
	longestHandOver = 10 * time.Second
)

// attachment is what the phases about one object pass on.
type attachment struct {
	key templatestore.Key
	// object is nil where it is not known.
	object *unstructured.Unstructured
	// binding is nil if there is none.
	binding workv1alpha2.Binding
	// never is true for an object that is never propagated.
	never bool
	users []dependency.User
	// decision is the decision about the binding.
	decision dependency.Decision
}

// readObject reads the object, its binding and who needs it. Of an object that
// is not known nothing is concluded as long as anybody may need it, and the
// binding of one that is gone goes with it.
func (r attach) readObject(ctx context.Context, s *attachment) (loop.Next, error) {
	obj, presence, err := r.templates.Get(ctx, s.key)
	if err != nil || presence == templatestore.Absent || presence == templatestore.Unknown && r.index.concerns(s.key) {
		return loop.Next{Done: true}, err
	}
	s.object = obj
	b, found, err := r.reader.binding(ctx, bindings.KeyOf(s.key))
	if err != nil {
		return loop.Next{}, err
	}
	if found {
		s.binding = b
	}
	if s.object != nil {
		if s.never = !propagation.Propagates(selector.ResourceOf(obj), r.opts.Skip); !s.never {
			s.users = r.index.usersOf(selector.ResourceOf(obj))
		}
	}
	switch {
	case !found && (len(s.users) == 0 || obj.GetDeletionTimestamp() != nil):
		return loop.Next{Done: true}, nil
	case !found:
		return loop.Next{}, nil
	case r.written.Leaving(b):
		return loop.Next{Done: true}, nil // its end brings the object back
	}
	return r.owner(s)
}

// owner ends the pass where the binding of that name is not the object's own.
func (r attach) owner(s *attachment) (loop.Next, error) {
	owner := bindings.TemplateOf(s.binding)
	switch {
	case owner == s.key:
		return loop.Next{}, nil
	case owner.GroupKind() == s.key.GroupKind() && owner.ObjectKey() == s.key.ObjectKey():
		r.objects.Add(owner, false) // the same in another version of its API
		return loop.Next{Done: true}, nil
	case len(s.users) == 0:
		return loop.Next{Done: true}, nil
	default:
		return loop.Next{}, loop.Waiting(workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed, collisionPause, fmt.Errorf(
			"%s %s cannot go along: the name of its binding is taken by %s %s %s", s.key.Kind, s.key.Name, owner.GroupVersion(), owner.Kind, owner.Name))
	}
}

// decide sets the decision about the binding.
func (r attach) decide(ctx context.Context, s *attachment) (loop.Next, error) {
	var unread error
	s.decision = dependency.Decide(dependency.Case{
		Object: s.object, Binding: s.binding, Users: s.users, NewID: r.newID,
		Left: func(ref dependency.Ref) bool {
			left, err := r.left(ctx, s, ref)
			unread = errors.Join(unread, err)
			return left
		},
	})
	return loop.Next{}, unread
}

// left reports whether a user that the reverse index did not show among those that need the
// object is known not to: it was looked at, it takes nothing along, or the control
// plane itself has no such binding. One that has entered the reverse index since as
// somebody who needs the object has not left: it brings the object back here.
func (r attach) left(ctx context.Context, s *attachment, ref dependency.Ref) (bool, error) {
	if e := r.index.get(ref); e != nil {
		return e.known && (s.never || !e.mayNeed(s.key, s.object)), nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	b, found, err := r.reader.binding(ctx, key)
	if err != nil || found {
		return found && !r.opts.uses(b), err
	}
	_, there, err := bindings.Get(ctx, r.live, key)
	return err == nil && !there, err
}

// write creates, updates or deletes the binding.
func (r attach) write(ctx context.Context, s *attachment) (loop.Next, error) {
	switch {
	case s.decision.Binding == nil && s.binding == nil:
		return loop.Next{}, nil
	case s.decision.Binding == nil:
		return r.remove(ctx, s)
	case s.binding == nil:
		return r.create(ctx, s)
	default:
		return r.change(ctx, s)
	}
}

// remove deletes a binding that nobody needs any more. Where a policy is about
// to carry the object, the binding stays as it is until that has happened, so that
// clusters keep what they hold.
func (r attach) remove(ctx context.Context, s *attachment) (loop.Next, error) {
	if r.follows(ctx, s) && r.handed.withinTimeout(s.binding.GetUID(), r.opts.Clock.Now()) {
		return loop.Next{After: handOver}, nil
	}
	version := client.Preconditions{UID: ptr.To(s.binding.GetUID()), ResourceVersion: ptr.To(s.binding.GetResourceVersion())}
	switch err := r.hub.Delete(ctx, s.binding.DeepCopyObject().(client.Object), version); {
	case err != nil && bindings.IsStale(err):
		return loop.Next{After: behind}, nil
	case err != nil:
		return loop.Next{}, fmt.Errorf("delete the binding of a dependency that nobody needs: %w", err)
	}
	r.handed.forget(s.binding.GetUID())
	r.written.Deleted(s.binding)
	log.FromContext(ctx).Info("deleted the binding of a dependency: nobody needs it any more", "binding", s.binding.GetName(), "needed", words(s.decision.Released))
	r.wake(s.decision.Released)
	return loop.Next{}, nil
}

// follows reports whether a policy is about to carry the object.
func (r attach) follows(ctx context.Context, s *attachment) bool {
	_, claimed := propagation.Claimed(s.binding)
	return !claimed && s.object != nil && r.opts.Carried != nil && r.opts.Carried(ctx, s.object)
}

// waiting knows since when bindings wait for a policy. The zero value is ready.
type waiting struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// withinTimeout reports whether a binding may wait longer.
func (w *waiting) withinTimeout(uid types.UID, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == nil {
		w.since = map[types.UID]time.Time{}
	}
	since, waits := w.since[uid]
	if !waits {
		maps.DeleteFunc(w.since, func(_ types.UID, at time.Time) bool { return now.Sub(at) > 2*longestHandOver })
		since = now
		w.since[uid] = now
	}
	return now.Sub(since) < longestHandOver
}

// forget ends the wait of a binding.
func (w *waiting) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, uid)
}

func (r attach) create(ctx context.Context, s *attachment) (loop.Next, error) {
	b := s.decision.Binding // from now on as the server returned it
	err := r.hub.Create(ctx, b)
	switch {
	case apierrors.IsAlreadyExists(err):
		return loop.Next{After: behind}, nil
	case apierrors.HasStatusCause(err, "NamespaceTerminating") || apierrors.IsNotFound(err):
		return loop.Next{}, nil // the object is being deleted as well
	case err != nil:
		return loop.Next{}, refused(fmt.Errorf("make the binding of %s %s, which goes along: %w", s.key.Kind, s.key.Name, err))
	}
	r.written.Wrote(b)
	log.FromContext(ctx).Info("made the binding of a dependency", "binding", b.GetName(), "needed", words(s.decision.Joined))
	return loop.Next{}, nil
}

func (r attach) change(ctx context.Context, s *attachment) (loop.Next, error) {
	b := s.decision.Binding
	patch, some, err := bindings.Patch(s.binding, b)
	if err != nil || !some {
		return loop.Next{}, err
	}
	switch err := r.hub.Patch(ctx, b, patch); {
	case err != nil && bindings.IsStale(err):
		return loop.Next{After: behind}, nil
	case err != nil:
		return loop.Next{}, refused(fmt.Errorf("write who needs %s %s: %w", s.key.Kind, s.key.Name, err))
	}
	r.handed.forget(b.GetUID())
	r.written.Wrote(b)
	log.FromContext(ctx).Info("wrote who needs a dependency", "binding", b.GetName(), "joined", words(s.decision.Joined), "parted", words(s.decision.Released))
	r.wake(s.decision.Released)
	return loop.Next{}, nil
}

// wake enqueues users that are no longer named: their finalizer may be removed.
func (r attach) wake(refs []dependency.Ref) {
	for _, ref := range refs {
		r.users.Add(requestFor(ref), false)
	}
}

// refused gives err the reason where users should hear of it.
func refused(err error) error {
	if bindings.IsRefused(err) {
		return loop.Retry(workv1alpha2.EventReasonSyncScheduleResultToDependenciesFailed, err)
	}
	return err
}

// words returns refs for the log.
func words(refs []dependency.Ref) []string {
	out := make([]string, 0, len(refs))
	for _, ref := range refs {
		out = append(out, ref.String())
	}
	return out
}

// names reports whether b says that ref needs it.
func names(b workv1alpha2.Binding, ref dependency.Ref) bool {
	return slices.Contains(dependency.Refs(b), ref)
}
