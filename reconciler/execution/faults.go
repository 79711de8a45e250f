package execution

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/reconciler/execution/cascadeguard"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/owners"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// faults distinguishes errors that pass by themselves from those of a Work.
type faults struct {
	link  link
	tries tries
	// queue enqueues a Work that may create what is missing.
	queue interface{ AddLater(work client.ObjectKey) }
}

// explain returns a *waitqueue.Blocked for an error that may pass by itself, so that it is not reported yet: while the
// member is out of reach, or a namespace is about to be created, nothing is wrong with the Work. It returns other
// errors as they are.
func (f *faults) explain(s *state, o *object, err error) error {
	if err == nil {
		return nil
	}
	if owners.IsOwned(err) {
		o.record = workv1alpha1.AppliedHash{Ordinal: o.Ordinal} // the object belongs to another Work by now
		return err
	}
	if err = f.link.fault(err); waitqueue.IsBlocked(err) {
		return err
	}
	if err = skiperrors.Within(o.Title(), o.Key.Namespace, err); skiperrors.IsWaiting(err) {
		return err
	}
	written, busy := apierrors.IsConflict(err), errors.Is(err, members.ErrBusy) || apierrors.IsTooManyRequests(err)
	if tries := f.tries.NumRequeues(s.key); written && tries < triesForConflict || busy && tries < triesForPlace {
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: err}
	}
	if refusal := (*impersonation.Refusal)(nil); errors.As(err, &refusal) && refusal.Passes() && f.tries.NumRequeues(s.key) < triesForOthers {
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRights, Lack: refusal.Lack()}, Err: err}
	}
	if errors.Is(err, members.ErrNoNamespace) {
		// The Work of the namespace may have recorded it as applied, and it is gone since: let that Work check.
		f.queue.AddLater(client.ObjectKey{Namespace: s.key.Namespace, Name: workv1alpha2.WorkName("Namespace", o.Key.Namespace, "")})
		if f.tries.NumRequeues(s.key) < triesForOthers {
			return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnNamespace, Namespace: o.Key.Namespace}, Err: err}
		}
	}
	return err
}

// keeps returns a text about what blocks the deletion of a CustomResourceDefinition that its Work asks for, if that
// takes long: objects of its kind that are left. It is empty for anything else.
func (f *faults) keeps(ctx context.Context, s *state, o *object) string {
	if !cascadeguard.Defines(o.GVK.GroupKind()) || o.observed.DeletionTimestamp.IsZero() || f.tries.NumRequeues(s.key) < triesForRemoval {
		return ""
	}
	live, err := s.member.Get(ctx, o.GVK, o.Key)
	if err != nil {
		return "" // the next pass tries again
	}
	if left := cascadeguard.Left(ctx, s.member, live); len(left) > 0 {
		return cascade.BlockedByKind(left, live.GetFinalizers())
	}
	return ""
}

// triesForOthers is how often a Work is tried before it counts as a failure that a namespace, or a right of its author,
// is missing, which another Work may be creating: about three seconds.
const triesForOthers = 6

// triesForConflict is how often a Work is tried before conflicts with another
// writer of its object count as a failure: about three seconds.
const triesForConflict = 6

// triesForPlace is how often a Work is tried before an overloaded member counts as a
// failure: about six seconds.
const triesForPlace = 7

// releases requeues other Works once what they wait for exists.
type releases struct {
	// hub reads the bindings by which it is known to whom a role grants rights.
	hub   client.Reader
	queue interface {
		Release(match func(waitqueue.Cause) bool)
	}
}

// after requeues the Works that wait for the object that was sent: for a namespace, or for
// the rights that it grants.
func (r *releases) after(ctx context.Context, work *workv1alpha1.Work, o *object) {
	if o.GVK.Kind == "Namespace" && o.GVK.Group == "" {
		r.queue.Release(func(c waitqueue.Cause) bool {
			return c == waitqueue.Cause{Event: waitqueue.OnNamespace, Namespace: o.Key.Name}
		})
	}
	if access.Gives(o.GVK.GroupKind()) {
		if obj, err := o.Object(work); err == nil {
			given := impersonation.Given(ctx, r.hub, work, obj)
			r.queue.Release(func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnRights && given(c.Lack) })
		}
	}
}
