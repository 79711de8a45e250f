package apply

import (
	"context"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/descendants"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/sharing"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/wanted"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// heritage decides which objects that leave a Kustomization are taken over by others of its source.
type heritage struct {
	hub, live client.Reader
	siblings  *siblings.Index
	own       kustomizations.Store
}

func newHeritage(deps Deps, rules tenancy.Rules, actors *actors.Actors, own kustomizations.Store) *heritage {
	builds := wanted.Builds{Builder: deps.Builder, Actors: actors, Mapper: deps.Hub.RESTMapper()}
	return &heritage{hub: deps.Hub, live: deps.Live, siblings: siblings.New(deps.Hub, builds.Wants, wanted.Eligible(rules)), own: own}
}

// artifact returns the artifact that a run applies.
func (s *state) artifact() siblings.Artifact {
	return siblings.Artifact{Source: s.source.Source, Digest: s.source.digest, Revision: s.source.revision}
}

// share refuses a revision with objects that other Kustomizations of the source hold at the same revision: two owners
// would overwrite each other's labels. It also finds out which objects that are left as they are get our labels.
func (h *heritage) share(ctx context.Context, s *state) (loop.Next, error) {
	h.siblings.Learn(s.ks, s.artifact(), siblings.WantsOf(s.desired, s.objects))
	s.last.waitsForSiblings(s.source.Source, true)
	found, err := sharing.Find(ctx, h.siblings, sharing.Query{Of: s.ks, At: s.artifact(), Changes: s.plan.Changes, Added: s.diff.Added})
	if err != nil {
		return loop.Next{}, err
	}
	s.last.borrows = found.Borrows
	for _, i := range found.Takes {
		s.plan.Changes[i].Takes = true
	}
	if len(found.Shared) > 0 {
		return loop.Next{}, loop.Waiting(siblings.ReasonSharedObject, intervals.Retry(s.ks), siblings.SharedError(found.Shared, s.owner, s.sees(), s.source.revision))
	}
	s.last.waitsForSiblings(s.source.Source, false)
	return loop.Next{}, nil
}

// leave finds out what a revision deletes, and what siblings take over instead.
func (h *heritage) leave(ctx context.Context, s *state) (loop.Next, error) {
	if s.leaving.known = true; !s.ks.Spec.Prune {
		return loop.Next{}, nil
	}
	var err error
	if s.leaving.beneath, err = descendants.Of(ctx, h.live, s.owner, s.diff.Removed); err == nil {
		s.leaving.Leaving, err = h.split(ctx, s, s.artifact(), applier.Prunable(s.diff.Removed, s.seen))
	}
	return loop.Next{}, err
}

func (h *heritage) split(ctx context.Context, s *state, at siblings.Artifact, doomed []inventory.Entry) (siblings.Leaving, error) {
	answer, err := h.siblings.Ask(ctx, siblings.Query{Of: s.ks, At: at, Objects: doomed, Upcoming: siblings.ChildrenIn(s.objects), Going: siblings.KeysIn(doomed)})
	if err != nil {
		return siblings.Leaving{}, err
	}
	out := siblings.Of(doomed, answer, s.allowance(at.Revision, doomed), at.Revision)
	out.Within = s.sees()
	return out, nil
}

// sees returns the only namespace whose Kustomizations messages about this one may name; empty for all.
func (s *state) sees() string {
	if s.actor.Privileged() {
		return ""
	}
	return s.ks.Namespace
}

// allowance returns what people have allowed to be deleted at a revision. Names are resolved among all that the
// revision holds, drops or deletes.
func (s *state) allowance(revision string, doomed []inventory.Entry) inventory.Allowance {
	return inventory.AllowanceOf(s.ks.Annotations[inventory.AllowPruneAnnotation], s.source.allows, revision).Among(s.diff.owned, s.desired, doomed)
}

// kept returns a function that returns what others of the source take over of a child Kustomization's inventory when
// the revision removes the child. It considers the Kustomizations that the revision holds and those it removes.
func (h *heritage) kept(s *state) func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
	return func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
		return h.siblings.Kept(ctx, child, owned, siblings.ChildrenIn(s.objects), siblings.KeysIn(s.leaving.Deleted))
	}
}

// handsOver reports whether the entry is a Kustomization that the revision removes and from which others of its
// source take something over: they cannot be healthy before it is gone. It records these objects in the child's
// status, so that they are not deleted along with the child, even if the next revision does not hold them any more.
func (h *heritage) handsOver(ctx context.Context, s *state, e inventory.Entry) (bool, error) {
	keys := siblings.KeysIn([]inventory.Entry{e})
	if len(keys) == 0 {
		return false, nil
	}
	return h.own.Bequeath(ctx, keys[0], h.kept(s))
}

// handoverPoll is the pause before looking again whether a sibling has taken what it wants, in case the
// watch missed it.
const handoverPoll = 5 * time.Second

// await sets the time of the next run if siblings have yet to take something over.
func (h *heritage) await(_ context.Context, s *state) (loop.Next, error) {
	if !s.leaving.Waits() {
		return loop.Next{}, nil
	}
	s.last.waitsForSiblings(s.source.Source, true)
	if len(s.leaving.Undecided) > 0 {
		return loop.Next{After: intervals.Retry(s.ks)}, nil
	}
	return loop.Next{After: min(intervals.Retry(s.ks), handoverPoll)}, nil
}
