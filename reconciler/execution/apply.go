package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/reconciler/execution/acting"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// action is what one manifest needs.
type action int

const (
	// keep: the member has what was asked for, or is on the way there.
	keep action = iota
	// await: whether it has is not known yet.
	await
	// send: the manifest is new or changed, or its object is gone.
	send
	// correct: somebody changed what is ours.
	correct
	// restore: the object is gone, or has lost its label.
	restore
)

// decide says what a manifest needs, from its hash, the record of what was last
// applied, and what is known of its object.
func decide(hash string, record workv1alpha1.AppliedHash, observed *members.Observed, presence members.Presence) action {
	switch {
	case presence == members.Present && !observed.DeletionTimestamp.IsZero():
		return keep
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
		return keep
	}
}

// carry brings every manifest to the member that is not there as it should be.
// What fails does not stop the others.
func (l *lane) carry(ctx context.Context, s *state) (loop.Next, error) {
	var next loop.Next
	for i := range s.parsed {
		m := &s.parsed[i]
		if m.err != nil {
			s.failed[i] = m.err
			continue
		}
		after, err := l.carryOne(ctx, s, m)
		if b := (*waitqueue.Blocked)(nil); errors.As(err, &b) {
			s.blocked = b
			return loop.Next{Done: true}, nil
		}
		s.failed[i] = err
		if outcome.IsAsItIs(err) {
			after.After = backoff.LastRetry // it may have gone by then
		}
		if after.After > 0 && (next.After == 0 || after.After < next.After) {
			next.After = after.After
		}
	}
	return next, nil
}

func (l *lane) carryOne(ctx context.Context, s *state, m *manifest) (loop.Next, error) {
	if s.applied[m.ordinal].Desired != m.hash && other(s.work, m) {
		s.applied[m.ordinal] = workv1alpha1.AppliedHash{Ordinal: m.ordinal} // it is about another object
	}
	record := s.applied[m.ordinal]
	observed, presence := s.member.Read(m.gvk, m.key)
	s.objects[m.ordinal], s.known[m.ordinal] = observed, presence != members.Unknown
	misnamed := l.applied.misnamed(s, observed)
	if suspended(s.work) {
		return loop.Next{}, nil
	}
	if err := l.owners.conflict(ctx, s, m, observed); err != nil {
		return loop.Next{}, l.explain(s, m, err)
	}
	act := decide(m.hash, record, observed, presence)
	if act == keep && misnamed && observed.DeletionTimestamp.IsZero() {
		act = send
	}
	switch act {
	case await:
		return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnSync, Kind: m.gvk}, After: waitqueue.SafetyNet, Err: fmt.Errorf("the watch of %s is not synced", m.gvk)}
	case keep:
		return kept(s, m, record, observed)
	case correct, restore:
		if reports(s.work) {
			found, err := l.drift.inspect(ctx, s, m, observed)
			if err != nil || found {
				return loop.Next{After: waitqueue.SafetyNet}, l.explain(s, m, err)
			}
			act = correct // as it should be, but not ours any more
		}
	}
	if err := paused(ctx, l, s, m, act, presence); err != nil {
		return loop.Next{}, err // at each look, before the back-off of what is put back
	}
	if act == correct || act == restore {
		if pause := l.backoff.Due(s.key); pause > 0 { // what is not as it should be is not called applied meanwhile
			return loop.Next{After: pause}, l.explain(s, m, l.backoff.Why(s.key, m.ordinal))
		}
		l.backoff.Ran(s.key)
	}
	done, ok := l.applied.claim(m)
	if !ok {
		return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: fmt.Errorf("%s is sent by another Work right now", m.title())}
	}
	defer done()
	untold := s.drifts[m.ordinal]
	observed, err := l.apply(ctx, s, m, target{act, observed, presence})
	if act == correct || act == restore {
		l.backoff.Failed(s.key, m.ordinal, err)
	}
	if err != nil {
		s.applied[m.ordinal], s.drifts[m.ordinal] = record, untold // nothing was sent, nothing put back
		if outcome.IsAsItIs(err) {
			return loop.Next{}, err
		}
		return loop.Next{}, l.explain(s, m, err)
	}
	s.objects[m.ordinal], s.known[m.ordinal] = observed, true
	sent := &s.applied[m.ordinal]
	sent.Ordinal, sent.Desired, sent.Observed = m.ordinal, m.hash, observed.Owned
	l.applied.wrote(s)
	opens(ctx, l, s, m)
	log.FromContext(ctx).Info("Applied", "kind", m.gvk.Kind, "namespace", m.key.Namespace, "name", m.key.Name)
	if d := s.drifts[m.ordinal]; d != nil && d != untold {
		l.drift.tell(s, m, d)
	}
	return loop.Next{}, nil
}

// kept judges an object that is left as it is.
func kept(s *state, m *manifest, record workv1alpha1.AppliedHash, observed *members.Observed) (loop.Next, error) {
	err := outcome.Kept(m.title(), record.Desired, m.hash, !observed.DeletionTimestamp.IsZero(), reports(s.work))
	if err != nil && observed.Work != s.key { // nobody tells of its end
		return loop.Next{After: soon}, err
	}
	return loop.Next{}, err
}

// soon is when an object is looked at again that names somebody else and goes.
const soon = 5 * time.Second

// opens lets go on what waited for the manifest that was sent: for its namespace, or for
// the rights that it gives.
func opens(ctx context.Context, l *lane, s *state, m *manifest) {
	if m.gvk.Kind == "Namespace" && m.gvk.Group == "" {
		l.queue.Release(func(c waitqueue.Cause) bool {
			return c == waitqueue.Cause{Event: waitqueue.OnNamespace, Namespace: m.key.Name}
		})
	}
	if access.Gives(m.gvk.GroupKind()) {
		if obj, err := m.object(s.work); err == nil {
			given := acting.Given(ctx, l.hub, s.work, obj)
			l.queue.Release(func(c waitqueue.Cause) bool { return c.Event == waitqueue.OnRights && given(c.Lack) })
		}
	}
}

// misnamed reports whether the Work's object names it as it was called formerly.
func (l *applyCache) misnamed(s *state, observed *members.Observed) bool {
	former := client.ObjectKey{}
	if observed != nil && observed.Work != s.key && s.has(observed) {
		former = observed.Work
	}
	l.renames.Note(former, s.key)
	return former.Name != ""
}

// target is the object that a manifest is sent to, as far as it is known.
type target struct {
	act      action
	observed *members.Observed
	presence members.Presence
}

// apply sends one manifest. Where an object may be in the way that is not ours,
// it is sent so that it only makes a new one; the member is asked what is there
// if that is refused, if fields of it are to be kept, or if somebody interfered.
func (l *lane) apply(ctx context.Context, s *state, m *manifest, to target) (*members.Observed, error) {
	desired, err := m.object(s.work)
	if err == nil {
		err = acting.MayName(s.work, desired)
	}
	if err != nil {
		return nil, err
	}
	there := to.presence == members.Present
	sentBefore := to.presence == members.Unknown && s.applied[m.ordinal].Desired != "" && !s.member.Standing().Contested
	var known *members.Observed
	if there {
		known = to.observed
	}
	ours := there && to.observed.Owned != "" && s.has(to.observed)
	switch {
	case to.act == correct || there && !ours || l.retention.Looks(desired, known, sentBefore, s.applied[m.ordinal].Replicas != nil):
		return l.applyOver(ctx, s, m, desired, to.act)
	case ours || sentBefore:
		return s.send(ctx, desired)
	}
	desired.SetResourceVersion(members.OnlyNew)
	made, err := s.send(ctx, desired)
	if !apierrors.IsConflict(err) {
		if err == nil && to.act == restore {
			s.drifts[m.ordinal] = putBack(m.removed(), l.options.Clock.Now())
		}
		return made, err
	}
	desired.SetResourceVersion("")
	return l.applyOver(ctx, s, m, desired, to.act)
}

// applyOver sends one manifest once it is known what object it meets.
func (l *lane) applyOver(ctx context.Context, s *state, m *manifest, desired *unstructured.Unstructured, act action) (*members.Observed, error) {
	live, err := s.member.Get(ctx, m.gvk, m.key)
	switch {
	case apierrors.IsNotFound(err) && act == correct && reports(s.work):
		return nil, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: errMoved}
	case apierrors.IsNotFound(err):
		if act == correct || act == restore {
			s.drifts[m.ordinal] = putBack(m.removed(), l.options.Clock.Now())
		}
		return s.send(ctx, desired)
	case err != nil:
		return nil, err
	}
	if err := l.owners.conflict(ctx, s, m, members.Marks(live)); err != nil {
		return nil, err
	}
	if !mayTake(s, m, desired, live) {
		return nil, s.taken(m, live)
	}
	if desired, err = s.retain(ctx, l.retention, desired, live, &s.applied[m.ordinal]); err != nil {
		return nil, err
	}
	if changes := s.changes(desired, live); len(changes) > 0 && (act == correct || act == restore) {
		if reports(s.work) {
			return nil, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: errMoved}
		}
		s.drifts[m.ordinal] = putBack(m.title()+": "+ownership.Describe(changes), l.options.Clock.Now())
	}
	patch, err := ownership.Adopt(desired, live)
	if err == nil && patch != nil {
		err = s.adopt(ctx, m, patch)
	}
	if err != nil {
		return nil, err
	}
	return s.send(ctx, desired)
}

// retain returns what is sent of a manifest: not what is the member's.
func (s *state) retain(ctx context.Context, r retention.Retention, desired, live *unstructured.Unstructured, record *workv1alpha1.AppliedHash) (*unstructured.Unstructured, error) {
	out, err := r.Retain(ctx, s.member, desired, live, record)
	if after, awaits := kinds.Awaits(err); awaits {
		return nil, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnSync, Kind: desired.GroupVersionKind()}, After: max(after, backoff.FirstRetry), Err: err}
	}
	return out, err
}

// errMoved says that an object which only changed hands has changed since, where
// that is to be reported and not reverted: it is looked at again.
var errMoved = errors.New("the object has changed since it was compared")

// mayTake reports whether the Work may apply to an object: to one that is managed,
// to one that was its own before somebody took the label off, and to any if the
// manifest says so. What another hub manages is not managed here.
func mayTake(s *state, m *manifest, desired, live *unstructured.Unstructured) bool {
	marks := members.Marks(live)
	if s.foreign(marks) {
		return overwrites(desired)
	}
	return marks.Managed || s.named(marks) || overwrites(desired) || s.applied[m.ordinal].Desired != "" && ownership.Applies(live)
}

// explain tells faults of the way from faults of the manifest: while the member
// is out of reach, or a namespace is on its way, nothing is wrong with the Work.
func (l *lane) explain(s *state, m *manifest, err error) error {
	if err == nil {
		return nil
	}
	if errors.As(err, new(*heldError)) {
		s.applied[m.ordinal] = workv1alpha1.AppliedHash{Ordinal: m.ordinal} // what was sent once is another's by now
		return err
	}
	if err = l.unreachable(err); waitqueue.IsBlocked(err) {
		return err
	}
	written, busy := apierrors.IsConflict(err), errors.Is(err, members.ErrBusy) || apierrors.IsTooManyRequests(err)
	if tries := l.queue.Retries.NumRequeues(s.key); written && tries < triesForConflict || busy && tries < triesForPlace {
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, Err: err}
	}
	if refusal := (*acting.Refusal)(nil); errors.As(err, &refusal) && refusal.Passes() && l.queue.Retries.NumRequeues(s.key) < triesForOthers {
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRights, Lack: refusal.Lack()}, Err: err}
	}
	if errors.Is(err, members.ErrNoNamespace) {
		// One that was there before may have been used as it was, and be gone.
		l.queue.AddLater(client.ObjectKey{Namespace: s.key.Namespace, Name: workv1alpha2.WorkName("Namespace", m.key.Namespace, "")})
		if l.queue.Retries.NumRequeues(s.key) < triesForOthers {
			return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnNamespace, Namespace: m.key.Namespace}, Err: err}
		}
	}
	return err
}

// triesForOthers is how often a Work is tried before what another Work may be bringing
// counts as a failure, a namespace or a right of who applied the template: some three seconds.
const triesForOthers = 6

// triesForConflict is how often a Work is tried before an object that somebody
// else writes all the time counts as a failure: about three seconds.
const triesForConflict = 6

// triesForPlace is how often a Work is tried before a member that has too much to
// do counts as a failure: about six seconds.
const triesForPlace = 7
