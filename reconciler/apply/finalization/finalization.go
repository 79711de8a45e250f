package finalization

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	// handoverPoll is the pause before looking again whether a sibling has taken what it wants, in case the watch
	// missed it.
	handoverPoll = 5 * time.Second
	// anewAfter is how long after its deletion a Kustomization stays that its parent holds and will create again: the
	// parent may be about to be deleted as well.
	anewAfter = 2 * time.Second
	// mostNamed is how many objects a text names.
	mostNamed = 3
)

// Deps are what a Remover works with.
type Deps struct {
	Applier  *applier.Applier
	Actors   *impersonation.Actors
	Siblings *siblings.Index
	Losses   *cascadingdeletion.Counter
	// Brake limits how much is deleted of what others were to take over.
	Brake inventory.Brake
	// Live reads without a cache.
	Live client.Reader
	// Retirements say for whom policies and overrides still count, and Switches have their end count with what others write; nil
	// if each write counts by itself.
	Retirements switchover.Retirements
	Switches    switchover.Switches
}

// Remover deletes what Kustomizations leave behind. Use New.
type Remover struct{ deps Deps }

// New returns a Remover.
func New(deps Deps) Remover { return Remover{deps} }

// Ending is how far the deletion of a Kustomization has come.
type Ending struct {
	// Gone says that the finalizer may be removed: what the Kustomization applied is gone, or stays on purpose.
	Gone bool
	// Stays describes what stays as the account may not delete it; empty for nothing.
	Stays string
	// Anew describes what stays as the next Kustomization of the same name will want it; empty for nothing.
	Anew string
	// Deleted are the objects that this run has deleted, and Heirs who has taken over what others of the source hold by now.
	Deleted    []inventory.ID
	Successors map[inventory.ID]client.ObjectKey
	// Within is the only namespace whose Kustomizations may be named; empty for all.
	Within string
	// Actor is who deletes.
	Actor impersonation.Actor
	// Revision is the latest one of the source; set if the brake refused to delete at it.
	Revision string
	// Along are those whose policies and overrides had to go at the same time, with what was deleted of them; Of is whose end it is.
	Along []Ending
	Of    *kustomizev1.Kustomization
	// Undecided are the objects that others were to take over, and that are still there.
	Undecided []inventory.ID
}

// end is what one run of End finds out about a Kustomization.
type end struct {
	Ending
	ks      *kustomizev1.Kustomization
	key     client.ObjectKey
	owned   []inventory.Entry
	seen    applier.Observed
	at      siblings.Artifact
	may     inventory.Allowance
	leaving siblings.Handover
	ready   bool              // there is something to delete, and an account to do so
	doomed  []inventory.Entry // what is there of it, and may be deleted
	refusal *inventory.Refusal
}

// End deletes what the inventory of a Kustomization holds and nobody wants. Errors are of class loop.ClassWaiting while
// others have yet to take something over, of loop.ClassStalled where people have to allow a deletion, and else come
// from the control plane. What the account may not delete stays: a Kustomization can always be deleted, and nothing is
// deleted with rights that its author lacks.
func (r Remover) End(ctx context.Context, ks *kustomizev1.Kustomization, now time.Time) (Ending, error) {
	e, err := r.judge(ctx, ks)
	if err != nil || !e.ready {
		return e.Ending, err
	}
	waits, err := r.prune(ctx, e, now)
	if err != nil {
		return e.Ending, err
	}
	if e.refusal != nil {
		e.Revision = e.at.Revision
		return e.Ending, loop.Stalled(inventory.ReasonPruneBlocked, e.refusal)
	}
	if waits != "" {
		return e.Ending, loop.Waiting(siblings.ReasonHandingOver, switchover.Pause, errors.New(waits))
	}
	return r.await(e, now)
}

// judge finds out what of a Kustomization would go, and whether the brake lets it. Errors are the control plane's: nothing may be deleted
// then.
func (r Remover) judge(ctx context.Context, ks *kustomizev1.Kustomization) (*end, error) {
	e := &end{ks: ks, key: client.ObjectKeyFromObject(ks)}
	e.Of, e.Undecided = ks, inventory.Undecided(ks.Status)
	var err error
	if e.ready, err = r.observe(ctx, e); err != nil || !e.ready {
		return e, err
	}
	e.doomed = applier.Prunable(e.owned, e.seen)
	if err := r.split(ctx, e, e.doomed); err != nil {
		return e, err
	}
	if err := r.blocked(ctx, e, e.doomed); err != nil && !errors.As(err, &e.refusal) {
		return e, err
	}
	return e, nil
}

// observe reads what is there, and finds out with whose rights it would be deleted. False means that there is nothing
// to delete: the inventory is empty, or all stays as the account is gone.
func (r Remover) observe(ctx context.Context, e *end) (bool, error) {
	var err error
	e.Gone = true
	if e.owned, err = inventory.Here(e.ks); err != nil || len(e.owned) == 0 {
		return false, err
	}
	if e.Actor, err = r.deps.Actors.Of(e.ks); err != nil {
		return false, err
	}
	orphaned, err := impersonation.Gone(ctx, r.deps.Live, e.Actor.Identity)
	if err != nil {
		return false, err
	}
	if orphaned {
		e.Stays = fmt.Sprintf("the service account %s is gone: %d objects stay", e.Actor.ServiceAccount, len(e.owned))
		return false, nil
	}
	e.Gone = false
	e.seen, err = r.deps.Applier.Observe(ctx, e.key, e.owned)
	return err == nil, err
}

// split finds out which of the doomed entries others want.
func (r Remover) split(ctx context.Context, e *end, doomed []inventory.Entry) error {
	var allows string
	var err error
	if e.at, allows, err = r.deps.Siblings.Latest(ctx, inventory.SourceOf(e.ks)); err != nil {
		return err
	}
	answer, err := r.deps.Siblings.Ask(ctx, siblings.Query{Of: e.ks, At: e.at, Objects: e.owned, Going: siblings.KeysIn(doomed)})
	if err != nil {
		return err
	}
	e.Successors = successorsOf(e.owned, e.seen, answer)
	e.may = inventory.AllowanceOf(e.ks.Annotations[inventory.AllowPruneAnnotation], allows, e.at.Revision).Among(doomed)
	e.leaving = siblings.Of(doomed, answer, e.may, e.at.Revision)
	if !e.Actor.Privileged() {
		e.Within, e.leaving.Within = e.ks.Namespace, e.ks.Namespace
	}
	if e.at.Digest == "" { // there is no commit of which it could be read
		e.leaving.Trailer = ""
	}
	return nil
}

// blocked removes from what is deleted the objects that others were to take over and that the brake does not let go,
// and returns why. The brake does not count other objects: whoever deleted the Kustomization gave them up with it.
func (r Remover) blocked(ctx context.Context, e *end, doomed []inventory.Entry) error {
	before := inventory.Undecided(e.ks.Status)
	was := func(entry inventory.Entry) bool {
		return slices.Contains(before, entry.ID) || !inventory.AllRecorded(before)
	}
	planned := slices.DeleteFunc(slices.Clone(e.leaving.Deleted), func(entry inventory.Entry) bool { return !was(entry) })
	undecided := slices.DeleteFunc(slices.Concat(e.leaving.Staying(), planned), func(entry inventory.Entry) bool {
		successor, inherited := e.leaving.Successors[entry.ID]
		return !was(entry) && (!inherited || successor == e.key) // the parent that creates it again may go as well
	})
	e.Undecided = inventory.IDsOf(undecided)
	own := inventory.OfKustomization(e.key)
	if len(planned) == 0 || e.may.Names(own) {
		return nil
	}
	kept := func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
		return r.deps.Siblings.Kept(ctx, child, owned, nil, siblings.KeysIn(e.leaving.Deleted))
	}
	lost, err := r.deps.Losses.Of(ctx, planned, cascadingdeletion.Revision{Kept: kept})
	if err != nil {
		return err
	}
	inventory.FlagLast(lost, e.leaving.Staying())
	err = r.deps.Brake.Check(len(doomed), lost, e.may, e.at.Revision)
	if refusal := (*inventory.Refusal)(nil); errors.As(err, &refusal) {
		refusal.Ends = true
		if e.at.Digest == "" { // there is no revision that could be allowed
			refusal.Revision, refusal.Allow, refusal.Trailer = e.ks.Status.LastAppliedRevision, e.may.NameOf(own), ""
		}
		e.leaving.Deleted = inventory.Compare(e.leaving.Deleted, planned).Removed
	}
	return err
}

// due is what may go now: policies and overrides, which count with what others have yet to take, only after that.
func (e *end) due(now time.Time) []inventory.Entry {
	if !e.leaving.Waits() || e.comesAnew(now) {
		return e.leaving.Deleted
	}
	_, others := switchover.Rules(e.leaving.Deleted)
	return others
}

// anew is what the next Kustomization of this name wants.
func (e *end) anew() []inventory.Entry {
	return slices.DeleteFunc(slices.Clone(e.leaving.Passing), func(entry inventory.Entry) bool { return e.leaving.Successors[entry.ID] != e.key })
}

// comesAnew reports whether nothing but the next Kustomization of this name is waited for, which is not made before this one is gone.
func (e *end) comesAnew(now time.Time) bool {
	return len(e.anew()) == len(e.leaving.Staying()) && now.After(e.ks.DeletionTimestamp.Add(anewAfter))
}

// await says for what the end still waits.
func (r Remover) await(e *end, now time.Time) (Ending, error) {
	anew := e.anew()
	switch {
	case !e.leaving.Waits():
	case e.comesAnew(now):
		e.Anew = fmt.Sprintf("%s: wanted again by the next Kustomization of this name", inventory.First(inventory.IDsOf(anew), mostNamed))
	default:
		after := handoverPoll
		if len(anew) > 0 {
			after = time.Second
		}
		return e.Ending, loop.Waiting(siblings.ReasonHandingOver, after, errors.New(e.leaving.String()))
	}
	e.Gone = e.ks.GetDeletionPolicy() != kustomizev1.DeletionPolicyWaitForTermination || e.Stays != "" ||
		len(e.leaving.Deleted) == 0 && !e.seen.AnyDeleting(e.owned) || now.After(e.ks.DeletionTimestamp.Add(e.ks.GetTimeout()))
	return e.Ending, nil
}
