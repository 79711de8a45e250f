package endings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/losses"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	// handoverPoll is when it is looked again whether a sibling has taken what it wants. The loop also hears of it.
	handoverPoll = 5 * time.Second
	// anewAfter is for how long a Kustomization stays that is to be made anew: whoever makes it may be about to be
	// deleted as well.
	anewAfter = 2 * time.Second
	// mostNamed is how many objects a text names.
	mostNamed = 3
)

// Deps are what a Remover works with.
type Deps struct {
	Applier  *applier.Applier
	Actors   *actors.Actors
	Siblings *siblings.Index
	Losses   *losses.Counter
	// Brake limits what goes that was to change hands.
	Brake inventory.Brake
	// Live reads without a cache.
	Live client.Reader
}

// Remover deletes what Kustomizations leave behind. Use New.
type Remover struct{ deps Deps }

// New returns a Remover.
func New(deps Deps) Remover { return Remover{deps} }

// Ending is how far the end of a Kustomization has come.
type Ending struct {
	// Gone says that it may go: what it applied is gone, or stays.
	Gone bool
	// Stays says what stays that it may not delete; empty for nothing.
	Stays string
	// Anew says what stays as the next Kustomization of its name wants it; empty for nothing.
	Anew string
	// Actor is who deletes.
	Actor actors.Actor
	// Revision is the latest of its source; set where that is refused.
	Revision string
	// Undecided is what was to change hands, and is still there.
	Undecided []inventory.ID
}

// end is what one look at a Kustomization learns.
type end struct {
	Ending
	ks      *kustomizev1.Kustomization
	key     client.ObjectKey
	owned   []inventory.Entry
	seen    applier.Observed
	at      siblings.Artifact
	may     inventory.Allowance
	leaving siblings.Leaving
}

// End deletes what the inventory of a Kustomization holds and nobody wants. Errors are of class loop.ClassWaiting where
// others have yet to take something, of loop.ClassStalled where people have to let something go, and else of the control
// plane. What the account may not delete stays: a Kustomization can always be deleted, and nothing goes by rights that
// its author lacks.
func (r Remover) End(ctx context.Context, ks *kustomizev1.Kustomization, now time.Time) (Ending, error) {
	e := &end{ks: ks, key: client.ObjectKeyFromObject(ks)}
	e.Undecided = inventory.Undecided(ks.Status)
	ready, err := r.observe(ctx, e)
	if err != nil || !ready {
		return e.Ending, err
	}
	doomed := applier.Prunable(e.owned, e.seen)
	if err := r.split(ctx, e, doomed); err != nil {
		return e.Ending, err
	}
	blocked := r.blocked(ctx, e, doomed)
	if refusal := (*inventory.Refusal)(nil); blocked != nil && !errors.As(blocked, &refusal) {
		return e.Ending, blocked
	}
	err = r.deps.Applier.Prune(ctx, e.key, e.Actor, slices.Clone(e.leaving.Deleted), e.seen)
	if refusal := (*applier.Refusal)(nil); errors.As(err, &refusal) {
		e.Stays = fmt.Sprintf("%d objects stay: %v", len(refusal.Findings), e.Actor.Explained(err))
	} else if err != nil {
		return e.Ending, err
	}
	if blocked != nil {
		e.Revision = e.at.Revision
		return e.Ending, loop.Stalled(inventory.ReasonPruneBlocked, blocked)
	}
	return r.await(e, now)
}

// observe finds out what is there, and by whose rights it would go; false says that all of it stays, or that nothing is there.
func (r Remover) observe(ctx context.Context, e *end) (bool, error) {
	var err error
	e.Gone = true
	if e.owned, err = inventory.Read(e.ks.Status.Inventory); err != nil || len(e.owned) == 0 {
		return false, err
	}
	if e.Actor, err = r.deps.Actors.Of(e.ks); err != nil {
		return false, err
	}
	orphaned, err := actors.Gone(ctx, r.deps.Live, e.Actor.Identity)
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

// split finds out who wants what of that which would be deleted.
func (r Remover) split(ctx context.Context, e *end, doomed []inventory.Entry) error {
	var allows string
	var err error
	if e.at, allows, err = r.deps.Siblings.Latest(ctx, e.ks); err != nil {
		return err
	}
	answer, err := r.deps.Siblings.Ask(ctx, siblings.Query{Of: e.ks, At: e.at, Objects: doomed, Going: siblings.KeysIn(doomed)})
	if err != nil {
		return err
	}
	e.may = inventory.AllowanceOf(e.ks.Annotations[inventory.AllowPruneAnnotation], allows, e.at.Revision).Among(doomed)
	e.leaving = siblings.Of(doomed, answer, e.may, e.at.Revision)
	if !e.Actor.Privileged() {
		e.leaving.Within = e.ks.Namespace
	}
	if e.at.Digest == "" { // there is no commit of which it could be read
		e.leaving.Trailer = ""
	}
	return nil
}

// blocked takes back out of what is deleted what was to change hands and may not go, and says why. What was never to
// change hands was let go of with the Kustomization.
func (r Remover) blocked(ctx context.Context, e *end, doomed []inventory.Entry) error {
	before := inventory.Undecided(e.ks.Status)
	was := func(entry inventory.Entry) bool {
		return slices.Contains(before, entry.ID) || !inventory.AllRecorded(before)
	}
	planned := slices.DeleteFunc(slices.Clone(e.leaving.Deleted), func(entry inventory.Entry) bool { return !was(entry) })
	undecided := slices.DeleteFunc(slices.Concat(e.leaving.Staying(), planned), func(entry inventory.Entry) bool {
		successor, inherited := e.leaving.Successors[entry.ID]
		return !was(entry) && (!inherited || successor == e.key) // whoever makes it anew may be deleted as well
	})
	e.Undecided = inventory.IDsOf(undecided)
	own := inventory.OfKustomization(e.key)
	if len(planned) == 0 || e.may.Names(own) {
		return nil
	}
	kept := func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
		return r.deps.Siblings.Kept(ctx, child, owned, nil, siblings.KeysIn(e.leaving.Deleted))
	}
	lost, err := r.deps.Losses.Of(ctx, planned, losses.Revision{Kept: kept})
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

// await says for what the end still waits.
func (r Remover) await(e *end, now time.Time) (Ending, error) {
	deletion := e.ks.DeletionTimestamp.Time
	anew := slices.DeleteFunc(slices.Clone(e.leaving.Passing), func(entry inventory.Entry) bool { return e.leaving.Successors[entry.ID] != e.key })
	switch {
	case !e.leaving.Waits():
	case len(anew) == len(e.leaving.Staying()) && now.After(deletion.Add(anewAfter)):
		e.Anew = fmt.Sprintf("%s: wanted again by the next Kustomization of this name", inventory.First(inventory.IDsOf(anew), mostNamed))
	default:
		after := handoverPoll
		if len(anew) > 0 {
			after = time.Second
		}
		return e.Ending, loop.Waiting(siblings.ReasonHandingOver, after, errors.New(e.leaving.String()))
	}
	e.Gone = e.ks.GetDeletionPolicy() != kustomizev1.DeletionPolicyWaitForTermination || e.Stays != "" ||
		len(e.leaving.Deleted) == 0 && !e.seen.AnyDeleting(e.owned) || now.After(deletion.Add(e.ks.GetTimeout()))
	return e.Ending, nil
}
