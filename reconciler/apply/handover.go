package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/descendants"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// heritage decides which objects that leave Kustomizations go to others of their source.
type heritage struct {
	hub, live client.Reader
	siblings  *siblings.Index
	builder   Builder
	actors    *actors.Actors
	mapper    apimeta.RESTMapper
}

func newHeritage(deps Deps, rules tenancy.Rules, actors *actors.Actors) *heritage {
	h := &heritage{hub: deps.Hub, live: deps.Live, builder: deps.Builder, actors: actors, mapper: deps.Hub.RESTMapper()}
	h.siblings = siblings.New(deps.Hub, h.wants, eligible(rules))
	return h
}

// wants is a siblings.Build.
func (h *heritage) wants(ctx context.Context, ks *kustomizev1.Kustomization, at siblings.Artifact) (siblings.Wants, error) {
	as, err := h.actors.Of(ks)
	if err != nil {
		return siblings.Wants{}, err
	}
	if err := as.Check(); err != nil {
		return siblings.Wants{}, err
	}
	objects, err := h.builder.Build(ctx, builder.Input{Kustomization: ks, Digest: at.Digest, Revision: at.Revision, As: as, Retry: intervals.Retry(ks)})
	if err != nil {
		return siblings.Wants{}, err
	}
	if len(objects) == 0 {
		return siblings.Wants{}, errors.New("it holds no manifests")
	}
	for _, obj := range objects {
		gvk := obj.GroupVersionKind()
		if mapping, err := h.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
			obj.SetNamespace("")
		}
	}
	entries, err := inventory.Of(objects)
	return siblings.Wants{Entries: entries, Children: siblings.ChildrenIn(objects)}, err
}

// eligible returns the siblings.Eligible of what rules allow: one of another namespace may take
// over only if it acts as the control plane, or its tenant could keep others' objects.
func eligible(rules tenancy.Rules) siblings.Eligible {
	return func(ks *kustomizev1.Kustomization, namespace string) bool {
		foreign := inventory.SourceOf(ks).Namespace != ks.Namespace && !rules.AllowCrossNamespace
		if unsupported, _ := refused(ks.Spec); unsupported != "" || foreign {
			return false
		}
		return ks.Namespace == namespace || rules.Of(actors.Subject(ks)).Privileged()
	}
}

// artifact returns the one that a run works on.
func (s *state) artifact() siblings.Artifact {
	return siblings.Artifact{Source: s.source.key, Digest: s.source.digest, Revision: s.source.revision}
}

// share refuses a revision with an object that another Kustomization of the source holds at it, too.
func (h *heritage) share(ctx context.Context, s *state) (loop.Next, error) {
	h.siblings.Learn(s.ks, s.artifact(), siblings.Wants{Entries: s.desired, Children: siblings.ChildrenIn(s.objects)})
	s.last.waitsForSiblings(s.source.key, true)
	var unheld []inventory.Entry
	added := map[inventory.ID]inventory.Entry{}
	for _, e := range s.diff.Added {
		added[e.ID] = e
	}
	for _, c := range s.plan.Changes {
		id := inventory.IDOf(c.Desired)
		switch e, isNew := added[id]; {
		case c.Shares:
		case c.Holder == client.ObjectKey{} && isNew:
			unheld = append(unheld, e)
		case c.Holder != client.ObjectKey{} && c.Holder != s.owner:
			wanted, err := h.siblings.Holder(ctx, s.ks, s.artifact(), id, c.Holder)
			if err != nil {
				return loop.Next{}, err
			}
			if wanted {
				return loop.Next{}, sharedError(s, siblings.Shared{ID: id, With: c.Holder})
			}
		}
	}
	shared, found, err := h.siblings.Earlier(ctx, s.ks, s.artifact(), unheld)
	if err != nil {
		return loop.Next{}, err
	}
	if found {
		return loop.Next{}, sharedError(s, shared)
	}
	s.last.waitsForSiblings(s.source.key, false)
	return loop.Next{}, nil
}

func sharedError(s *state, shared siblings.Shared) error {
	return loop.Waiting(ReasonSharedObject, intervals.Retry(s.ks), fmt.Errorf("%s stands in Kustomization %s and in %s: remove it from one of them; until then revision %s is not applied here",
		inventory.Describe(shared.ID), siblings.Name(shared.With, s.sees()), s.owner, s.source.revision))
}

// leave finds out what a revision deletes, and what goes to siblings instead.
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

// end does so for a Kustomization that is deleted.
func (h *heritage) end(ctx context.Context, s *state, doomed []inventory.Entry) error {
	at, err := h.artifactOf(ctx, s.ks)
	if err != nil {
		return err
	}
	s.last.waitsForSiblings(at.Source, true)
	s.leaving.Leaving, err = h.split(ctx, s, at, doomed)
	return err
}

func (h *heritage) split(ctx context.Context, s *state, at siblings.Artifact, doomed []inventory.Entry) (siblings.Leaving, error) {
	answer, err := h.siblings.Ask(ctx, siblings.Query{Of: s.ks, At: at, Objects: doomed, Upcoming: siblings.ChildrenIn(s.objects), Going: siblings.KeysIn(doomed)})
	if err != nil {
		return siblings.Leaving{}, err
	}
	out := siblings.Of(doomed, answer, s.allowance(at.Revision), at.Revision)
	out.Within = s.sees()
	return out, nil
}

// sees is the namespace whose Kustomizations people may learn of by this one; empty for all.
func (s *state) sees() string {
	if s.actor.Privileged() {
		return ""
	}
	return s.ks.Namespace
}

// allowance is what people let go at a revision.
func (s *state) allowance(revision string) inventory.Allowance {
	return inventory.AllowanceOf(s.ks.Annotations[inventory.AllowPruneAnnotation], s.source.allows, revision)
}

// kept returns what of a child Kustomization's inventory others of its source take over when a
// revision removes it, given the Kustomizations that the revision holds and those it removes.
func (h *heritage) kept(s *state) func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
	return func(ctx context.Context, child *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
		at, err := h.artifactOf(ctx, child)
		if err != nil {
			return nil, err
		}
		answer, err := h.siblings.Ask(ctx, siblings.Query{Of: child, At: at, Objects: owned, Upcoming: siblings.ChildrenIn(s.objects), Going: siblings.KeysIn(s.leaving.Deleted)})
		out := make(map[inventory.ID]bool, len(answer.Heirs))
		for id := range answer.Heirs {
			out[id] = true
		}
		return out, err
	}
}

// handsOver reports whether a revision removes a Kustomization from which others of its source take
// something: they cannot be healthy before it is gone.
func (h *heritage) handsOver(ctx context.Context, s *state, e inventory.Entry) (bool, error) {
	keys := siblings.KeysIn([]inventory.Entry{e})
	if len(keys) == 0 {
		return false, nil
	}
	var child kustomizev1.Kustomization
	if err := h.hub.Get(ctx, keys[0], &child); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	owned, err := inventory.Read(child.Status.Inventory)
	if err != nil {
		return false, err
	}
	kept, err := h.kept(s)(ctx, &child, owned)
	return len(kept) > 0, err
}

// artifactOf returns the latest artifact of a Kustomization's source: one without a digest where there
// is none, or no source.
func (h *heritage) artifactOf(ctx context.Context, ks *kustomizev1.Kustomization) (siblings.Artifact, error) {
	var repository sourcev1.GitRepository
	at := siblings.Artifact{Source: inventory.SourceOf(ks)}
	if err := h.hub.Get(ctx, at.Source, &repository); client.IgnoreNotFound(err) != nil {
		return at, fmt.Errorf("read the source %s: %w", at.Source, err)
	}
	if artifact := repository.Status.Artifact; artifact != nil {
		at.Digest, at.Revision = artifact.Digest, artifact.Revision
	}
	return at, nil
}

// handoverPoll is when it is looked again whether a sibling has taken what it wants. The loop also
// hears of it.
const handoverPoll = 5 * time.Second

// await has a run that leaves something to siblings come again.
func (h *heritage) await(_ context.Context, s *state) (loop.Next, error) {
	if !s.leaving.Waits() {
		return loop.Next{}, nil
	}
	s.last.waitsForSiblings(s.source.key, true)
	if len(s.leaving.Held) > 0 {
		return loop.Next{After: intervals.Retry(s.ks)}, nil
	}
	return loop.Next{After: min(intervals.Retry(s.ks), handoverPoll)}, nil
}
