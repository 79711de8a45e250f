package execution

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
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
	case presence == members.Absent || presence == members.Unserved:
		return send
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
		if b := (*blocked)(nil); errors.As(err, &b) {
			s.blocked = b
			return loop.Next{Done: true}, nil
		}
		s.failed[i] = err
		if after.After > 0 && (next.After == 0 || after.After < next.After) {
			next.After = after.After
		}
	}
	return next, nil
}

func (l *lane) carryOne(ctx context.Context, s *state, m *manifest) (loop.Next, error) {
	record := s.applied[m.ordinal]
	observed, presence := s.member.Read(m.gvk, m.key)
	s.objects[m.ordinal], s.known[m.ordinal] = observed, presence != members.Unknown
	if suspended(s.work) {
		return loop.Next{}, nil
	}
	switch decide(m.hash, record, observed, presence) {
	case await:
		return loop.Next{}, &blocked{cause: cause{event: onSync, kind: m.gvk}, after: safetyNet, err: fmt.Errorf("the watch of %s is not synced", m.gvk)}
	case correct:
		if pause := l.pace.due(s.key); pause > 0 {
			return loop.Next{After: pause}, nil
		}
		l.pace.ran(s.key)
	case keep:
		return loop.Next{}, nil
	}
	observed, err := l.apply(ctx, s, m, observed, presence)
	if err != nil {
		return loop.Next{}, l.explain(s, m, err)
	}
	s.objects[m.ordinal] = observed
	s.applied[m.ordinal] = workv1alpha1.AppliedHash{Ordinal: m.ordinal, Desired: m.hash, Observed: observed.Owned}
	l.ledger.wrote(s)
	if m.gvk.Kind == "Namespace" && m.gvk.Group == "" {
		l.line.release(func(c cause) bool { return c == cause{event: onNamespace, namespace: m.key.Name} })
	}
	log.FromContext(ctx).Info("Applied", "kind", m.gvk.Kind, "namespace", m.key.Namespace, "name", m.key.Name)
	return loop.Next{}, nil
}

// apply sends one manifest. Where an object may be in the way that is not ours,
// it is sent so that it only makes a new one; the member is asked what is there
// if that is refused, or if fields of it are to be kept.
func (l *lane) apply(ctx context.Context, s *state, m *manifest, observed *members.Observed, presence members.Presence) (*members.Observed, error) {
	desired, err := m.object(s.work)
	if err != nil {
		return nil, err
	}
	ours := presence == members.Present && observed.Managed
	sentBefore := presence == members.Unknown && s.applied[m.ordinal].Desired != ""
	retains, free := l.retainer.Retains(desired), ours || sentBefore || overwrites(desired)
	if !retains && free {
		return s.member.Apply(ctx, desired)
	}
	if !retains {
		desired.SetResourceVersion(members.OnlyNew)
		made, err := s.member.Apply(ctx, desired)
		if !apierrors.IsConflict(err) {
			return made, err
		}
		desired.SetResourceVersion("")
	}
	return l.applyOver(ctx, s, m, desired)
}

// applyOver sends one manifest once it is known what object it meets.
func (l *lane) applyOver(ctx context.Context, s *state, m *manifest, desired *unstructured.Unstructured) (*members.Observed, error) {
	live, err := s.member.Get(ctx, m.gvk, m.key)
	switch {
	case apierrors.IsNotFound(err):
		return s.member.Apply(ctx, desired)
	case err != nil:
		return nil, err
	case !mayTake(s.key, desired, members.Marks(live)):
		return nil, m.taken()
	}
	if l.retainer.Retains(desired) {
		retained, err := l.retainer.Retain(desired, live)
		if err != nil {
			return nil, fmt.Errorf("keep what the member set in %s %s: %w", m.gvk.Kind, m.key, err)
		}
		desired = members.KeepOwned(desired, retained, live)
	}
	return s.member.Apply(ctx, desired)
}

// taken says that somebody else's object has the name, and what to do.
func (m *manifest) taken() error {
	name := m.key.Name
	if m.key.Namespace != "" {
		name = m.key.String()
	}
	if m.gvk.Kind == "Namespace" && m.gvk.Group == "" {
		return fmt.Errorf("Namespace %s already exists in the cluster and is not managed by Flotilla: it is used as it is, and stays when the one here goes", name) //nolint:staticcheck // begins with the name of a kind
	}
	return fmt.Errorf("%s %s already exists in the cluster and is not managed by Flotilla: remove it there, or set conflictResolution to Overwrite in the policy", m.gvk.Kind, name)
}

// mayTake says whether the Work may apply to an object: to one that is managed,
// to one that was its own before somebody took the label off, and to any if the
// manifest says so.
func mayTake(work client.ObjectKey, desired *unstructured.Unstructured, live *members.Observed) bool {
	return live.Managed || live.Work == work || overwrites(desired)
}

// explain tells faults of the way from faults of the manifest: while the member
// is out of reach, or a namespace is on its way, nothing is wrong with the Work.
func (l *lane) explain(s *state, m *manifest, err error) error {
	if _, ok := l.connected(l.cluster); !ok {
		return &blocked{cause: cause{event: onProof}, after: safetyNet, err: err}
	}
	if errors.Is(err, members.ErrNoNamespace) && l.line.retries.NumRequeues(s.key) < triesForNamespace {
		return &blocked{cause: cause{event: onNamespace, namespace: m.key.Namespace}, err: err}
	}
	return err
}

// triesForNamespace is how often a Work is tried before a namespace that is not
// there counts as a failure: about three seconds.
const triesForNamespace = 6
