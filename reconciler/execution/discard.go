package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/reconciler/execution/guard"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// discard has the member remove the objects of a Work that is being deleted, or
// lets them go if they are to stay. Nobody is asked where the cluster is gone,
// or is leaving and out of reach.
func (l *lane) discard(ctx context.Context, s *state) (loop.Next, error) {
	if !holds(s.work) {
		return loop.Next{Done: true}, nil
	}
	if s.cluster == nil {
		return loop.Next{}, nil
	}
	if s.member == nil {
		if !s.cluster.DeletionTimestamp.IsZero() && !ready(s.cluster) {
			return loop.Next{}, nil
		}
		return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnProof}, After: waitqueue.SafetyNet, Err: fmt.Errorf("cluster %s is not connected", s.cluster.Name)}
	}
	parsed := l.applied.manifests(s.work)
	parsed = slices.Concat(parsed, l.applied.leftovers(s.work, parsed))
	var stays, refused error // why the first one is still there
	for i := range parsed {
		if parsed[i].err != nil {
			continue
		}
		err := l.discardOne(ctx, s, &parsed[i])
		switch {
		case outcome.IsHeld(err):
			return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: waitqueue.SafetyNet, Err: err}
		case waitqueue.IsBlocked(err):
			return loop.Next{}, err
		case outcome.IsTerminating(err) && stays == nil:
			stays = warden{l}.explain(ctx, s, &parsed[i], err)
		case !outcome.IsTerminating(err) && err != nil && refused == nil:
			refused = fmt.Errorf("remove %s %s: %w", parsed[i].gvk.Kind, parsed[i].key, err)
		}
	}
	if refused != nil { // somebody has to act
		stays = refused
	}
	if stays == nil {
		return loop.Next{}, nil
	}
	after := min(l.queue.Retries.When(s.key), longestRemoval) // the watch tells when it is gone
	return loop.Next{}, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: after, Err: warden{l}.tell(ctx, s, stays)}
}

// longestRemoval is how long a Work waits at most until its removal is tried again: what
// keeps an object may go without a word.
const longestRemoval = 30 * time.Second

// discardOne has the member remove the object of a manifest, and errs while it is not
// gone. It asks the member itself about an object that the watch does not have: the
// watch may be behind, and once the Work is gone nobody comes back.
func (l *lane) discardOne(ctx context.Context, s *state, m *manifest) error {
	kind := m.gvk
	observed, presence := s.member.Read(kind, m.key)
	if presence != members.Present {
		live, err := s.member.Get(ctx, kind, m.key)
		if errors.Is(err, members.ErrNotServed) { // that version is not; another one has the same objects
			if kind, err = s.member.Served(ctx, kind); err == nil {
				live, err = s.member.Get(ctx, kind, m.key)
			}
		}
		switch {
		case apierrors.IsNotFound(err) || errors.Is(err, members.ErrNotServed):
			return nil
		case err != nil:
			return l.unreachable(err)
		}
		observed = members.Marks(live)
	}
	if !observed.Managed || !s.named(observed) || recalled(s.work) && s.cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	if observed.Work != s.key {
		if asks, err := l.owners.asks(ctx, observed.Work, m); err != nil || asks {
			return err // the Work is there under its former name still, and that one has it
		}
	}
	if !s.member.Standing().MayRemove(observed.Claim, s.id()) {
		log.FromContext(ctx).Info("Left to the hub that applied it", "kind", m.gvk.Kind, "namespace", m.key.Namespace, "name", m.key.Name)
		return nil
	}
	if slices.ContainsFunc(s.objects, func(o *members.Observed) bool { return o != nil && o.UID == observed.UID }) {
		return nil // asked for under another group
	}
	if !observed.DeletionTimestamp.IsZero() {
		return s.terminating(m)
	}
	successor, ok, err := l.owners.successor(ctx, s, m)
	if err != nil {
		return err
	}
	if ok {
		log.FromContext(ctx).Info("Left to another Work", "kind", m.gvk.Kind, "namespace", m.key.Namespace, "name", m.key.Name, "successor", successor)
		return nil
	}
	if l.options.held(l.cluster) {
		return &outcome.Held{Verb: "remove", Title: m.title()}
	}
	preserve := s.preserves()
	if !preserve {
		if preserve, err = (warden{l}).spare(ctx, s, m); err != nil {
			return err
		}
	}
	verb, gone := "Left in place", true
	if preserve {
		err = s.member.Patch(ctx, kind, m.key, ownermeta.Unset(observed.UID))
	} else {
		verb = "Removed"
		gone, err = s.member.Delete(ctx, kind, m.key, observed.UID)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return l.unreachable(err)
	}
	log.FromContext(ctx).Info(verb, "kind", m.gvk.Kind, "namespace", m.key.Namespace, "name", m.key.Name)
	if !gone {
		return s.terminating(m)
	}
	return nil
}

// recalled reports whether what a Work made that is being deleted is asked for again.
func recalled(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.WantedAgainAnnotation] == "true"
}

// preserves reports whether what the Work has sent is to stay when it goes.
func (s *state) preserves() bool { return ptr.Deref(s.work.Spec.PreserveResourcesOnDeletion, false) }

// terminating says that an object of the Work is being deleted and still there. Nobody
// waits for it where it was not to go, or where the cluster leaves: it was told.
func (s *state) terminating(m *manifest) error {
	if s.preserves() || !s.cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	return &outcome.Terminating{Title: m.title()}
}

// warden keeps what others have in members from going with what the Works of a lane
// delete.
type warden struct{ *lane }

// spare reports whether the object of a manifest is to stay, because the cluster leaves
// and others have something there. It errs while the object must not be deleted.
func (l warden) spare(ctx context.Context, s *state, m *manifest) (stays bool, err error) {
	r := &guard.Removal{
		Kind: m.gvk, Key: m.key, Title: m.title(), Work: s.work, Standing: s.member.Standing(), Leaving: s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero(),
	}
	for _, own := range l.applied.manifests(s.work) {
		if !own.same(*m) {
			continue
		}
		if desired, err := own.object(s.work); err == nil {
			r.Desired = desired
		}
	}
	err = l.guard.Judge(ctx, s.member, r)
	var refusal *guard.Refusal
	if !errors.As(err, &refusal) {
		return false, err
	}
	if why := refusal.Unwrap(); why != nil {
		if err := l.unreachable(why); waitqueue.IsBlocked(err) {
			return false, err
		}
	}
	switch {
	case r.Leaving:
		log.FromContext(ctx).Info("The cluster keeps what others have there", "reason", refusal.Error())
		return true, nil
	case s.work.DeletionTimestamp.IsZero():
		return false, refusal // the Work's own status tells
	}
	if err := l.guard.Tell(ctx, s.work, refusal); err != nil {
		return false, err
	}
	return false, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: max(slowly, l.queue.Retries.When(s.key)), Err: refusal}
}

// explain returns an error with what keeps an object that has been terminating for long.
func (l warden) explain(ctx context.Context, s *state, m *manifest, err error) error {
	if !outcome.IsTerminating(err) || l.hopeful(s) {
		return err
	}
	if live, fault := s.member.Get(ctx, m.gvk, m.key); fault == nil {
		return outcome.Lingers(m.title(), live)
	}
	return err // the next look finds out
}

// tell says in the Work's status why it does not go, once that takes long, and returns it.
func (l warden) tell(ctx context.Context, s *state, why error) error {
	if waitqueue.IsBlocked(why) || l.hopeful(s) {
		return why
	}
	if err := l.guard.Tell(ctx, s.work, why); err != nil {
		return err
	}
	if s.beside { // from now on it is to be seen that it goes
		if err := l.parting.Mark(ctx, s.work); err != nil {
			return err
		}
	}
	return why
}

// hopeful reports whether what a Work removes may be gone in a moment.
func (l warden) hopeful(s *state) bool { return l.queue.Retries.NumRequeues(s.key) < triesForRemoval }

// triesForRemoval is how often a Work is tried before it tells why something is not gone:
// some six seconds.
const triesForRemoval = 7

// slowly is how soon a Work that waits for somebody's word is looked at again, at
// first: what goes by itself goes in a moment.
const slowly = time.Second

// unreachable tells faults of the way from others: of the member, or of this program's place there.
func (l *lane) unreachable(err error) error {
	if _, ok := l.connected(l.cluster); !ok || errors.Is(err, tenure.ErrUnseated) {
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnProof}, After: waitqueue.SafetyNet, Err: err}
	}
	return err
}

// letGo ends the Work.
func (l *lane) letGo(ctx context.Context, s *state) (loop.Next, error) {
	if s.beside {
		return loop.Next{}, l.parting.End(ctx, s.work)
	}
	return loop.Next{}, l.parting.LetGo(ctx, s.work)
}
