package apply

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// successors decides which objects that leave a Kustomization are taken over by others of its source.
type successors struct {
	hub, live client.Reader
	siblings  *siblings.Index
	differs   switchover.Differs
	store     kustomizations.Store
}

func newSuccessors(deps Deps, rules tenancy.Rules, actors *impersonation.Actors, own kustomizations.Store, clk clock.PassiveClock) *successors {
	builds := siblings.Builds{Builder: deps.Builder, Actors: actors, Mapper: deps.Hub.RESTMapper()}
	return &successors{hub: deps.Hub, live: deps.Live, siblings: siblings.New(deps.Hub, siblings.InTime(builds.Wants, clk), siblings.EligibleBy(rules)), differs: builds.Differs, store: own}
}

// artifact returns the artifact that a run applies.
func (s *state) artifact() siblings.Artifact {
	return siblings.Artifact{Source: s.source.Source, Digest: s.source.digest, Revision: s.source.revision}
}

// awaitSiblings ends a run while siblings have yet to apply what a Kustomization is built of.
func (h *successors) awaitSiblings(ctx context.Context, s *state) (loop.Next, error) {
	again, err := siblings.Await(ctx, h.siblings, siblings.Wait{Of: s.ks, At: s.artifact(), Age: s.now.Sub(s.source.since), As: s.actor, Differs: h.differs})
	if again > 0 || err != nil {
		s.last.awaited.SetSource(s.source.Source)
	}
	return s.quietly(again), err
}

// refuseSharedObjects refuses a revision with objects that other Kustomizations of the source hold at the same revision: two owners
// would overwrite each other's labels. It also finds out which objects that are left as they are get our labels.
func (h *successors) refuseSharedObjects(ctx context.Context, s *state) (loop.Next, error) {
	h.siblings.Learn(s.ks, s.artifact(), siblings.WantsOf(s.desired, s.objects))
	s.last.awaited.SetSource(s.source.Source)
	found, err := siblings.FindShared(ctx, h.siblings, siblings.SharedQuery{Of: s.ks, At: s.artifact(), Changes: s.plan.Changes, Added: s.diff.Added})
	if err != nil {
		return loop.Next{}, err
	}
	s.last.borrows = found.Borrows
	for _, i := range found.Takes {
		s.plan.Changes[i].Takes = true
	}
	if len(found.Shared) > 0 {
		return loop.Next{}, loop.Waiting(siblings.ReasonSharedObject, intervals.Retry(s.ks), siblings.SharedError(found.Shared, s.owner, s.actor.Sees(s.ks.Namespace), s.source.revision))
	}
	s.last.awaited.SetSource(inventory.Source{})
	return loop.Next{}, nil
}

// planPrune finds out what a revision deletes, and what siblings take over instead.
func (h *successors) planPrune(ctx context.Context, s *state) (loop.Next, error) {
	if s.stale.known = true; !s.ks.Spec.Prune {
		return loop.Next{}, nil
	}
	doomed := applier.Prunable(s.diff.Removed, s.seen)
	var err error
	if s.stale.descendants, err = cascadingdeletion.Descendants(ctx, h.live, s.owner, s.diff.Removed); err == nil {
		s.stale.Handover, err = h.splitStale(ctx, s, s.artifact(), doomed)
	}
	return loop.Next{}, err
}

func (h *successors) splitStale(ctx context.Context, s *state, at siblings.Artifact, doomed []inventory.Entry) (siblings.Handover, error) {
	answer, err := h.siblings.Ask(ctx, siblings.Query{Of: s.ks, At: at, Objects: doomed, Upcoming: siblings.ChildrenIn(s.objects), Going: siblings.KeysIn(doomed)})
	if err != nil {
		return siblings.Handover{}, err
	}
	out := siblings.Of(doomed, answer, s.allowance(at.Revision, doomed), at.Revision)
	out.Within = s.actor.Sees(s.ks.Namespace)
	return out, nil
}

// allowance returns what people have allowed to be deleted at a revision. Names are resolved among all that the
// revision holds, drops or deletes.
func (s *state) allowance(revision string, doomed []inventory.Entry) inventory.Allowance {
	return inventory.AllowanceOf(s.ks.Annotations[inventory.AllowPruneAnnotation], s.source.allows, revision).Among(s.diff.owned, s.desired, doomed)
}

// takenOver returns a function that returns what others of the source take over of a child Kustomization's inventory when
// the revision removes the child. It considers the Kustomizations that the revision holds and those it removes.
func (h *successors) takenOver(s *state) func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
	return func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
		return h.siblings.Kept(ctx, child, owned, siblings.ChildrenIn(s.objects), siblings.KeysIn(s.stale.Deleted))
	}
}

// handsOver reports whether the entry is a Kustomization that the revision removes and from which siblings take something over: they
// cannot be healthy before it is gone. These objects are recorded in its status, and so stay whatever the next revision holds.
func (h *successors) handsOver(ctx context.Context, s *state, e inventory.Entry) (bool, error) {
	keys := siblings.KeysIn([]inventory.Entry{e})
	if len(keys) == 0 {
		return false, nil
	}
	return h.store.RecordTakenOver(ctx, keys[0], h.takenOver(s))
}

// awaitHandover sets the time of the next run if siblings have yet to take something over.
func (h *successors) awaitHandover(_ context.Context, s *state) (loop.Next, error) {
	if !s.stale.Waits() {
		return loop.Next{}, nil
	}
	s.last.awaited.SetSource(s.source.Source)
	if len(s.stale.Undecided) > 0 {
		return loop.Next{After: intervals.Retry(s.ks)}, nil
	}
	return loop.Next{After: min(intervals.Retry(s.ks), handoverPoll)}, nil
}
