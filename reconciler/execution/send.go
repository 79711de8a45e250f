package execution

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

// sender applies manifests to a member, but only to objects that belong to the Work or that it may take.
type sender struct {
	retention retention.Retention
	owners    conflicts
	clock     clock.PassiveClock
}

// send sends one manifest. If an object that is not ours may be in the way,
// it sends the manifest so that it can only create an object. It reads the object from the member
// if that is refused, if fields of it have to be kept, or if somebody has changed it.
func (d *sender) send(ctx context.Context, s *state, o *object, to target) (*members.Observed, error) {
	desired, err := o.Object(s.work)
	if err == nil {
		err = impersonation.MayName(s.work, desired)
	}
	if err != nil {
		return nil, err
	}
	there := to.presence == members.Present
	sentBefore := to.presence == members.Unknown && o.record.Desired != "" && !s.member.Standing().Contested
	var known *members.Observed
	if there {
		known = to.observed
	}
	ours := there && to.observed.Owned != "" && s.owner().Has(to.observed)
	switch {
	case to.act == correct || there && !ours || d.retention.MustRead(desired, known, sentBefore, o.record.Replicas != nil):
		return d.over(ctx, s, o, desired, to.act)
	case ours || sentBefore:
		if made, err := put(ctx, s, desired); !ownership.Crowded(err) {
			return made, err
		}
		return d.over(ctx, s, o, desired, to.act)
	}
	desired.SetResourceVersion(members.OnlyNew)
	made, err := put(ctx, s, desired)
	if !apierrors.IsConflict(err) {
		if err == nil && to.act == restore {
			o.drift = drift.PutBack(drift.Removed(&o.Manifest), d.clock.Now())
		}
		return made, err
	}
	desired.SetResourceVersion("")
	return d.over(ctx, s, o, desired, to.act)
}

// over reads the object in the member and sends one manifest, if the Work may take the object.
func (d *sender) over(ctx context.Context, s *state, o *object, desired *unstructured.Unstructured, act action) (*members.Observed, error) {
	live, err := s.member.Get(ctx, o.GVK, o.Key)
	switch {
	case apierrors.IsNotFound(err) && act == correct && leavesDrift(s.work):
		return nil, errChanged
	case apierrors.IsNotFound(err):
		if act.putsBack() {
			o.drift = drift.PutBack(drift.Removed(&o.Manifest), d.clock.Now())
		}
		return put(ctx, s, desired)
	case err != nil:
		return nil, err
	}
	if err := d.owners.Conflict(ctx, s.work, s.member, &o.Manifest, members.MetadataOf(live)); err != nil {
		return nil, err
	}
	if !s.owner().MayTake(desired, live, o.record.Desired != "") {
		return nil, taken(s, o, live)
	}
	if desired, err = d.retention.Retain(ctx, s.member, desired, live, &o.record); err != nil {
		return nil, err
	}
	if changes := drift.Changes(s.owner(), desired, live); len(changes) > 0 && act.putsBack() {
		if leavesDrift(s.work) {
			return nil, errChanged
		}
		o.drift = drift.PutBack(drift.Changed(&o.Manifest, changes), d.clock.Now())
	}
	patch, err := ownership.Adopt(desired, live)
	if err == nil && patch != nil {
		err = secrets.WordedFor(desired, adopt(ctx, s, o, patch))
	}
	if err != nil {
		return nil, err
	}
	made, err := put(ctx, s, desired)
	if way, unread := ownership.Displace(desired, live, err); way != nil && unread == nil && adopt(ctx, s, o, way) == nil {
		return put(ctx, s, desired)
	}
	return made, err // without that, what was refused first says more
}

// errChanged says that an object has changed since it was compared, and that its drift is only reported. The next pass
// compares it again.
var errChanged = &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: errors.New("the object has changed since it was compared")}

// put applies an object, with the hub's identity in its metadata. The identity is added with a change
// that is sent anyway: it does not count as drift if it is missing, and is no reason to send anything.
func put(ctx context.Context, s *state, desired *unstructured.Unstructured) (*members.Observed, error) {
	if hub := s.member.Standing().Hub; hub != "" {
		_ = unstructured.SetNestedField(desired.Object, hub, "metadata", "annotations", workv1alpha2.HubAnnotation)
	}
	as, err := impersonation.Of(s.cluster, s.work, s.member)
	if err != nil {
		return nil, err
	}
	made, err := as.Apply(ctx, desired)
	return made, secrets.WordedFor(desired, err)
}

// adopt patches an object so that it belongs to the Work.
func adopt(ctx context.Context, s *state, o *object, patch []byte) error {
	as, err := impersonation.Of(s.cluster, s.work, s.member)
	if err != nil {
		return err
	}
	return as.Patch(ctx, o.GVK, o.Key, patch)
}

// taken returns why an existing object with the manifest's name is left alone.
func taken(s *state, o *object, live metav1.Object) error {
	by := live.GetAnnotations()[workv1alpha2.HubAnnotation]
	if by == s.member.Standing().Hub {
		by = ""
	}
	isNamespace := o.GVK.GroupKind() == schema.GroupKind{Kind: "Namespace"}
	return skiperrors.Taken(o.Title(), by, isNamespace, live.GetDeletionTimestamp() != nil)
}
