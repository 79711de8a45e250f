package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/owners"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// action is what is to be done about one manifest.
type action int

const (
	// nothing: the member has the manifest, or its controller is applying it.
	nothing action = iota
	// await: it is not known yet whether the member has it.
	await
	// send: the manifest is new or changed, or its object is gone.
	send
	// correct: somebody changed fields that Flotilla owns.
	correct
	// restore: the object is gone, or has lost its label.
	restore
)

// putsBack reports whether the action reverts a change of somebody else.
func (a action) putsBack() bool { return a == correct || a == restore }

// decide returns the action for a manifest, from its hash, the record of what was last
// applied, and what is known of its object.
func decide(hash string, record workv1alpha1.AppliedHash, observed *members.Observed, presence members.Presence) action {
	switch {
	case presence == members.Present && !observed.DeletionTimestamp.IsZero():
		return nothing
	case record.Desired != hash:
		return send
	case presence == members.Unknown:
		return await
	case presence == members.Unserved:
		return send
	case presence == members.Absent:
		return restore
	case record.Observed != observed.Owned || !observed.Managed:
		return correct
	default:
		return nothing
	}
}

// target is the object that a manifest is sent to, as far as it is known.
type target struct {
	act      action
	observed *members.Observed
	presence members.Presence
}

// applier brings the manifests of a cluster's Works to its member.
type applier struct {
	owners   conflicts
	drift    inspector
	gate     gate
	pauses   *backoff.Backoff
	sending  *owners.Sending
	sender   *sender
	faults   *faults
	records  recordKeeper
	renames  *ownermeta.Renames
	releases *releases
}

// inspector detects drift, and emits events about it.
type inspector interface {
	Inspect(ctx context.Context, l *drift.Finding) (*drift.Drift, error)
	Report(work *workv1alpha1.Work, m *manifest.Manifest, d *drift.Drift)
}

// recordKeeper keeps the record of what was sent until the Work's status has it.
type recordKeeper interface {
	Remember(work *workv1alpha1.Work, applied []workv1alpha1.AppliedHash, drifts []*drift.Drift)
}

// apply sends every manifest whose object in the member is missing or differs.
// A manifest that fails does not stop the others.
func (a *applier) apply(ctx context.Context, s *state) (loop.Next, error) {
	var next loop.Next
	for i := range s.objects {
		o := &s.objects[i]
		if o.Err != nil {
			o.failed = o.Err
			continue
		}
		after, err := a.applyOne(ctx, s, o)
		if b := (*waitqueue.Blocked)(nil); errors.As(err, &b) {
			s.blocked = b
			return loop.Next{Done: true}, nil
		}
		o.failed = err
		after = cmp.Or(skiperrors.Again(err), after)
		if after > 0 && (next.After == 0 || after < next.After) {
			next.After = after
		}
	}
	return next, nil
}

// applyOne applies one manifest if needed, and returns when to check it again; zero for
// when an event comes.
func (a *applier) applyOne(ctx context.Context, s *state, o *object) (time.Duration, error) {
	if o.record.Desired != o.Hash && o.Replaces(s.work) {
		o.record = workv1alpha1.AppliedHash{Ordinal: o.Ordinal} // the record is that of another object
	}
	observed, presence := s.member.Read(o.GVK, o.Key)
	o.observed, o.known = observed, presence != members.Unknown
	misnamed := a.misnamed(s, observed)
	if suspended(s.work) {
		return a.keptFrom(ctx, s, o, presence)
	}
	if err := a.owners.Conflict(ctx, s.work, s.member, &o.Manifest, observed); err != nil {
		return 0, a.faults.explain(s, o, err)
	}
	act := decide(o.Hash, o.record, observed, presence)
	if act == nothing && misnamed && observed.DeletionTimestamp.IsZero() {
		act = send
	}
	switch act {
	case await:
		return 0, unsynced(o)
	case nothing:
		return asItStands(s, o, a.faults.keeps(ctx, s, o))
	case correct, restore:
		if leavesDrift(s.work) {
			found, err := a.drift.Inspect(ctx, &drift.Finding{Work: s.work, Manifest: &o.Manifest, Record: o.record, Observed: observed, Member: s.member})
			if found != nil {
				o.drift = found
			}
			if err != nil || found != nil {
				return waitqueue.SafetyNet, a.faults.explain(s, o, err)
			}
			act = correct // its content is right, but it lost our metadata
		}
	}
	to := target{act, observed, presence}
	if err := a.gate.check(ctx, s, o, to); err != nil {
		return 0, err // before the back-off below, so that every pass reports it
	}
	if act.putsBack() {
		if pause := a.pauses.Due(s.key); pause > 0 { // an error, as an object that differs does not count as applied
			return pause, a.faults.explain(s, o, a.pauses.Why(s.key, o.Ordinal))
		}
		a.pauses.Ran(s.key)
	}
	return 0, a.send(ctx, s, o, to)
}

// keptFrom finds out what others did to an object while dispatching is suspended, and leaves it
// so. If the manifest has changed since it was sent, the report does not name what differs, as that may
// be the change of the manifest.
func (a *applier) keptFrom(ctx context.Context, s *state, o *object, presence members.Presence) (time.Duration, error) {
	sent := o.record.Desired
	if sent == "" {
		return 0, nil
	}
	switch act := decide(sent, o.record, o.observed, presence); {
	case act == await:
		return 0, unsynced(o)
	case act != correct && act != restore:
		return 0, nil
	case sent == o.Hash:
		found, err := a.drift.Inspect(ctx, &drift.Finding{Work: s.work, Manifest: &o.Manifest, Record: o.record, Observed: o.observed, Member: s.member})
		if err != nil {
			return 0, a.faults.explain(s, o, err)
		}
		o.drift = found
	case act == restore:
		o.drift = &drift.Drift{Text: drift.Removed(&o.Manifest)}
	default:
		o.drift = &drift.Drift{Text: drift.TakenOver(&o.Manifest)}
	}
	return waitqueue.SafetyNet, nil // the object may become right again without an event of the watch
}

// unsynced says that an object is not known before its watch is synced.
func unsynced(o *object) error {
	return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnSync, Kind: o.GVK}, After: waitqueue.SafetyNet, Err: fmt.Errorf("the watch of %s is not synced", o.GVK)}
}

// send sends one manifest while no other Work sends the same object, and records the result.
func (a *applier) send(ctx context.Context, s *state, o *object, to target) error {
	done, ok := a.sending.Begin(&o.Manifest)
	if !ok {
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: fmt.Errorf("%s is sent by another Work right now", o.Title())}
	}
	defer done()
	record, pending := o.record, o.drift
	observed, err := a.sender.send(ctx, s, o, to)
	if to.act.putsBack() {
		a.pauses.Failed(s.key, o.Ordinal, err)
	}
	if err != nil {
		o.record, o.drift = record, pending // nothing was sent or reverted
		if skiperrors.IsAsItIs(err) {
			return err
		}
		return a.faults.explain(s, o, err)
	}
	o.observed, o.known = observed, true
	o.record.Ordinal, o.record.Desired, o.record.Observed = o.Ordinal, o.Hash, observed.Owned
	a.records.Remember(s.work, s.records(), s.drifts())
	a.releases.after(ctx, s.work, o)
	log.FromContext(ctx).Info("Applied", "kind", o.GVK.Kind, "namespace", o.Key.Namespace, "name", o.Key.Name)
	if o.drift != nil && o.drift != pending {
		a.drift.Report(s.work, &o.Manifest, o.drift)
	}
	return nil
}

// asItStands returns the result for an object that is left as it is. keeps is what blocks one that is being
// deleted, if that is known.
func asItStands(s *state, o *object, keeps string) (time.Duration, error) {
	err := skiperrors.Kept(o.Title(), o.record.Desired, o.Hash, !o.observed.DeletionTimestamp.IsZero(), leavesDrift(s.work), keeps)
	if err != nil && o.observed.Work != s.key { // its deletion is an event for another Work
		return soon, err
	}
	return 0, err
}

// soon is when an object is checked again that names another Work and is being deleted.
const soon = 5 * time.Second

// misnamed reports whether the object names its Work by a former name.
func (a *applier) misnamed(s *state, observed *members.Observed) bool {
	former := client.ObjectKey{}
	if observed != nil && observed.Work != s.key && s.owner().Has(observed) {
		former = observed.Work
	}
	a.renames.Note(former, s.key)
	return former.Name != ""
}
