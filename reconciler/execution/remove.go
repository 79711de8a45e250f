package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	kindclass "github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/execution/cascadeguard"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
	"github.com/flotilla-io/flotilla/reconciler/execution/live"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// remover deletes the objects of Works in a member, and nothing that belongs to others.
type remover struct {
	link      link
	gate      gate
	owners    successors
	manifests asked
	guard     *cascadeguard.Guard
	last      *deletionrecheck.Judge
	tries     tries
	clock     clock.PassiveClock
}

// successors finds other Works that have a manifest for an object which a Work releases.
type successors interface {
	Asks(ctx context.Context, work client.ObjectKey, m *manifest.Manifest) (bool, error)
	Successor(ctx context.Context, of client.ObjectKey, m *manifest.Manifest) (successor client.ObjectKey, ok bool, err error)
}

// remove deletes the object of a manifest in the member, or releases it if it has to stay,
// and returns an error while it is not gone.
func (r *remover) remove(ctx context.Context, s *state, m *manifest.Manifest) error {
	observed, kind, err := live.Find(ctx, s.member, m)
	if err != nil {
		return r.link.fault(err)
	}
	if observed == nil {
		return nil
	}
	if mine, err := r.isToGo(ctx, s, m, observed); err != nil || !mine {
		return err
	}
	if !observed.DeletionTimestamp.IsZero() {
		return terminating(s, m)
	}
	if undecided(s.work) && !s.leaves() { // see reconciler/binding/recall
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: slowly, Err: fmt.Errorf("%s may be wanted again, as its template was made anew", m.Title())}
	}
	// Another Work with a manifest for the same object takes it over while it runs: to delete and
	// create it would interrupt it.
	successor, ok, err := r.owners.Successor(ctx, s.key, m)
	if err != nil {
		return err
	}
	if ok {
		log.FromContext(ctx).Info("Left to another Work", "kind", m.GVK.Kind, "namespace", m.Key.Namespace, "name", m.Key.Name, "successor", successor)
		return nil
	}
	if r.gate.held() { // checked here, as nothing before changes the member
		return &skiperrors.Held{Verb: "remove", Title: m.Title()}
	}
	preserve := preserves(s.work)
	if !preserve && volumes.Stays(m.GVK.GroupKind(), s.work) {
		if !s.leaves() {
			return r.keep(ctx, s, m)
		}
		preserve = true
	}
	if !preserve {
		if preserve, err = r.spare(ctx, s, m); err != nil {
			return err
		}
	}
	if slept := r.last.Slept(s.judged); slept != nil && !preserve { // what was judged before may not be so any more
		return slept
	}
	verb, gone := "Left in place", true
	if preserve {
		err = s.member.Patch(ctx, kind, m.Key, ownermeta.Unset(observed.UID))
	} else {
		verb = "Removed"
		gone, err = s.member.Delete(ctx, kind, m.Key, observed.UID, ownedBy(s.work, kind))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return r.link.fault(err)
	}
	log.FromContext(ctx).Info(verb, "kind", m.GVK.Kind, "namespace", m.Key.Namespace, "name", m.Key.Name)
	if !gone {
		return terminating(s, m)
	}
	return nil
}

// ownedBy returns how what an object owns is removed: before it, where nothing may start elsewhere while that runs.
func ownedBy(w *workv1alpha1.Work, kind schema.GroupVersionKind) metav1.DeletionPropagation {
	if w.Annotations[workv1alpha2.LeavesFirstAnnotation] != "" && kindclass.Of(kind.GroupKind()) != kindclass.Passive {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// keep leaves a volume claim in the member, with this hub's metadata: a later Work for it
// adopts it, and until then it is an orphan. A Work that is being deleted waits a while first, as its template may be
// being deleted as well, and then the claim has to go, too.
func (r *remover) keep(ctx context.Context, s *state, m *manifest.Manifest) error {
	if since := s.work.DeletionTimestamp; since != nil {
		if after := volumes.Wait(since.Time, r.clock.Now()); after > 0 {
			return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: after, Err: fmt.Errorf("%s may be deleted on the control plane, too", m.Title())}
		}
	}
	s.kept = append(s.kept, *m)
	log.FromContext(ctx).Info("A claim stays in the cluster: it was not deleted on the control plane", "namespace", m.Key.Namespace, "name", m.Key.Name)
	return nil
}

// isToGo reports whether the Work may delete an object, and none of its manifests still names it.
func (r *remover) isToGo(ctx context.Context, s *state, m *manifest.Manifest, observed *members.Observed) (bool, error) {
	if !observed.Managed || !s.owner().NamedBy(observed) || recalled(s.work) && !s.leaves() {
		return false, nil
	}
	if observed.Work != s.key {
		if asks, err := r.owners.Asks(ctx, observed.Work, m); err != nil || asks {
			return false, err // the Work still exists under its former name, and owns the object
		}
	}
	if !s.owner().MayRemove(observed) {
		log.FromContext(ctx).Info("Left to the hub that applied it", "kind", m.GVK.Kind, "namespace", m.Key.Namespace, "name", m.Key.Name)
		return false, nil
	}
	// The same object may be served under several API groups: one that a manifest names under another group stays.
	return !slices.ContainsFunc(s.objects, func(o object) bool { return o.observed != nil && o.observed.UID == observed.UID }), nil
}

// terminating returns the error for an object that is being deleted and still there. It is nil, so that the Work does
// not wait, if the object would have stayed, or if the cluster is being unjoined: its deletion was requested.
func terminating(s *state, m *manifest.Manifest) error {
	if preserves(s.work) || s.leaves() {
		return nil
	}
	return &skiperrors.Terminating{Title: m.Title()}
}

// spare reports whether the object of a manifest has to stay, because the cluster is being unjoined
// and the object contains objects of others. It returns an error while the object must not be deleted.
func (r *remover) spare(ctx context.Context, s *state, m *manifest.Manifest) (stays bool, err error) {
	removal := &cascadeguard.Removal{
		Kind: m.GVK, Key: m.Key, Title: m.Title(), Work: s.work, Standing: s.member.Standing(), Leaving: s.leaves(),
	}
	for _, own := range r.manifests.Of(s.work) {
		if !own.Same(*m) {
			continue
		}
		if desired, err := own.Object(s.work); err == nil {
			removal.Desired = desired
		}
	}
	err = r.guard.Judge(ctx, s.member, removal)
	var refusal *cascadeguard.Refusal
	if !errors.As(err, &refusal) {
		return false, err
	}
	if why := refusal.Unwrap(); why != nil {
		if err := r.link.fault(why); waitqueue.IsBlocked(err) {
			return false, err
		}
	}
	switch {
	case removal.Leaving:
		log.FromContext(ctx).Info("The cluster keeps what others have there", "reason", refusal.Error())
		return true, nil
	case s.work.DeletionTimestamp.IsZero():
		return false, refusal // reported by the condition Applied
	}
	s.stays = &stay{why: refusal}
	return false, &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: refusal.Again(max(slowly, r.tries.When(s.key))), Err: refusal}
}

// explain returns the error for an object that has been terminating for long together with what keeps it.
func (r *remover) explain(ctx context.Context, s *state, m *manifest.Manifest, err error) error {
	if !skiperrors.IsTerminating(err) || r.hopeful(s) {
		return err
	}
	if live, fault := s.member.Get(ctx, m.GVK, m.Key); fault == nil {
		return skiperrors.Lingers(m.Title(), live, cascadeguard.Left(ctx, s.member, live))
	}
	return err // the next pass tries again
}

// hopeful reports whether the deletion of a Work's objects has been tried only a few times, so that they may be gone in
// a moment.
func (r *remover) hopeful(s *state) bool { return r.tries.NumRequeues(s.key) < triesForRemoval }

// triesForRemoval is how often a Work is tried before it reports why an object is not gone:
// about six seconds.
const triesForRemoval = 7

// slowly is the shortest pause before a Work is tried again that waits for a person to act.
const slowly = time.Second
