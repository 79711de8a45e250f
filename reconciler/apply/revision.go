package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/limits"
	"github.com/flotilla-io/flotilla/reconciler/apply/riskyedits"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/termination"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// skipUnchanged finds out whether the files of a new artifact that the Kustomization reads are those that are applied
// already. Such a revision is not built, only reported. Unless other Kustomizations depend on this one, the report
// waits behind Kustomizations that the revision may change.
func (r *Reconciler) skipUnchanged(ctx context.Context, s *state) (loop.Next, error) {
	from, stands := s.last.unchangedSince(s)
	if !stands {
		return loop.Next{}, nil
	}
	if same, err := r.deps.Builder.Same(ctx, s.input(), from); err != nil || !same {
		return loop.Next{}, err
	}
	awaited, err := dependencies.Some(ctx, r.deps.Hub, s.owner)
	if err != nil || !s.last.adopt(s, !awaited) {
		return loop.Next{}, err
	}
	if len(siblings.KeysIn(s.desired)) == 0 && s.ks.Spec.KubeConfig == nil {
		r.successors.siblings.Learn(s.ks, s.artifact(), siblings.Wants{Entries: s.desired})
	}
	if s.yields = !awaited; s.yields {
		return loop.Next{Done: true, After: minimumPause}, nil
	}
	s.current, s.sameContent = true, true
	return loop.Next{}, nil
}

func (s *state) input() builder.Input {
	return builder.Input{Kustomization: s.ks, Digest: s.source.digest, Revision: s.source.revision, As: s.actor, Retry: intervals.Retry(s.ks), LeftOut: s.source.leftOut}
}

// awaitDependencies ends a run while a dependency is not ready. It also finds out whether the revision changes nothing
// here, or nothing since the one that began to wait: the wait is then not blamed on it.
func (r *Reconciler) awaitDependencies(ctx context.Context, s *state) (loop.Next, error) {
	next, err := r.prerequisites.awaitDependencies(ctx, s)
	if outcome := loop.As(err, ""); outcome != nil && outcome.Class != loop.ClassStalled {
		from, _ := s.last.unchangedSince(s)
		s.unchanged, s.waitsAsBefore = r.deps.Builder.Awaits(ctx, s.input(), from)
	}
	return next, err
}

// build builds the artifact to the objects of the revision.
func (r *Reconciler) build(ctx context.Context, s *state) (loop.Next, error) {
	s.tried = true
	in := s.input()
	in.Keep, in.Reveal, in.Spare, in.Omitted = true, s.last.secrets.Keep, s.last.secrets.Spare, s.omitted.Add
	objects, err := r.deps.Builder.Build(ctx, in)
	if apierrors.IsForbidden(err) {
		return loop.Next{}, loop.Waiting(applier.ReasonForbidden, intervals.Retry(s.ks), r.actors.Explained(ctx, s.actor, err))
	}
	if err != nil {
		return loop.Next{}, fmt.Errorf("build revision %s: %w", s.source.revision, err)
	}
	if len(objects) == 0 {
		return loop.Next{}, loop.Stalled(builder.ReasonEmptyBuild, fmt.Errorf("path %q of revision %s holds no manifests: correct spec.path or commit some; to remove what is there, delete this Kustomization",
			cmp.Or(s.ks.Spec.Path, "./"), s.source.revision))
	}
	s.objects = objects
	s.digest, s.bytes = builder.Digest(objects)
	return loop.Next{}, nil
}

// observe reads, by labels, the objects that are owned or wanted.
func (r *Reconciler) observe(ctx context.Context, s *state) (loop.Next, error) {
	owned, err := inventory.In(s.ks, s.diff.at.Place)
	if err != nil {
		return loop.Next{}, err
	}
	wanted, err := inventory.Of(s.objects)
	if err != nil {
		return loop.Next{}, loop.Stalled(builder.ReasonDuplicateObject, err)
	}
	if s.seen, err = s.diff.at.Applier.Observe(ctx, s.owner, inventory.Union(owned, wanted)); err != nil {
		return loop.Next{}, err
	}
	s.diff.owned = owned
	return loop.Next{}, nil
}

// dryRun compares the revision with the hub, or the cluster of spec.kubeConfig. If that would not accept one of its
// objects, the revision is refused as a whole.
func (r *Reconciler) dryRun(ctx context.Context, s *state) (loop.Next, error) {
	plan, err := s.diff.at.Applier.Check(ctx, applier.Set{
		Owner: s.owner, Objects: s.objects, Writer: s.diff.at, Force: s.ks.Spec.Force, LetGo: inventory.LetGo(s.ks.Status), Ignore: applier.IgnoreRules(s.ks),
	}, s.seen)
	if err != nil {
		return loop.Next{}, classifyRefusal(ctx, r.actors, s, err)
	}
	s.plan = plan
	// Check has removed the namespace, which is set on all objects, from cluster-scoped ones: read the IDs again.
	if s.desired, err = inventory.Of(s.objects); err != nil {
		return loop.Next{}, loop.Stalled(builder.ReasonDuplicateObject, err)
	}
	s.diff.Diff = inventory.Compare(s.diff.owned, s.desired)
	setApplying(s.last, s.desired)
	return loop.Next{}, r.prerequisites.limits.Grow(ctx, s.ks, limits.Size{Objects: int64(len(s.desired)), Bytes: s.bytes})
}

// classifyRefusal gives a refusal the reason of its first finding. It is tried again, as
// another object on the hub may be all that is missing.
func classifyRefusal(ctx context.Context, who *impersonation.Actors, s *state, err error) error {
	var refusal *applier.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	if !s.diff.at.Remote() { // elsewhere other accounts act
		err = who.Explained(ctx, s.actor, err)
	}
	return loop.Waiting(refusal.Reason(), intervals.Retry(s.ks), err)
}

// guardDeletions refuses a revision that would delete too much, or a precious object, on the hub or in clusters.
func (r *Reconciler) guardDeletions(ctx context.Context, s *state) (loop.Next, error) {
	may := s.allowance(s.source.revision, nil)
	s.stale.refused = true // also if this phase fails: nothing may be recorded as allowed before it ends well
	revision := riskyedits.Revision{
		Name: s.source.revision, Changes: s.plan.Changes, Seen: s.seen, Removed: inventory.IDsOf(s.diff.Removed), Allowed: may,
	}
	if r.deps.Templates != nil {
		revision.Labels = riskyedits.LabelsIn(ctx, r.deps.Templates)
	}
	err := riskyedits.Check(ctx, r.deps.Hub, revision)
	if refusal := (*riskyedits.Refusal)(nil); errors.As(err, &refusal) {
		err = loop.Waiting(refusal.Reason(), intervals.Retry(s.ks), err) // tried again, as the missing cluster may join
	}
	if err != nil {
		return loop.Next{}, err
	}
	err = r.losses.Check(ctx, *r.opts.Brake, cascadingdeletion.Removal{
		Of: s.ks, Revision: s.source.revision, By: cascadingdeletion.Revision{Kept: r.successors.takenOver(s), Places: cascadingdeletion.Places(s.plan.Changes)}, May: may,
		Owned: s.diff.owned, Deleted: s.stale.Deleted, Desired: s.desired, Stays: s.stale.Staying(),
	})
	if refusal := (*inventory.Refusal)(nil); errors.As(err, &refusal) {
		s.last.awaited.SetSource(s.source.Source) // another Kustomization may still take over what is dropped
		if held, unread := siblings.Held(ctx, r.deps.Hub, s.source.Source); unread == nil {
			refusal.Disclaim(may.Unmeant(held))
		}
	}
	if err != nil {
		return loop.Next{}, err
	}
	s.stale.refused = false
	return loop.Next{}, riskyedits.LetGo(ctx, r.deps.Hub, revision)
}

// apply writes what differs.
func (r *Reconciler) apply(ctx context.Context, s *state) (loop.Next, error) {
	if !s.diff.at.Remote() {
		r.lastApplied.recordTakeovers(s.owner, s.plan.Changes)
	}
	done, err := s.diff.at.Applier.Apply(ctx, s.plan, s.seen, r.switcher.beforePolicies(s))
	if err != nil {
		return loop.Next{}, classifyRefusal(ctx, r.actors, s, err)
	}
	if !done {
		return loop.Next{}, awaitDefinitions(ctx, s.diff.at.Applier, s)
	}
	return loop.Next{}, nil
}

// awaitDefinitions returns an error that waits for kinds and namespaces: shortly, and after spec.timeout as long as after any failure.
func awaitDefinitions(ctx context.Context, by *applier.Applier, s *state) error {
	if s.now.Sub(s.last.awaitsDefinitions(s)) < s.ks.GetTimeout() {
		return loop.Waiting(meta.ProgressingReason, definitionsPoll, applier.Awaits(ctx, by, s.plan))
	}
	why, err := by.Unserved(ctx, s.plan)
	if err != nil {
		return err
	}
	return loop.Waiting(applier.ReasonUnknownKind, intervals.Retry(s.ks), fmt.Errorf("after %s: %s", s.ks.GetTimeout(), why))
}

// findTerminating finds out what is still there of what left this revision and earlier ones. For a revision that was applied
// before it looks again as long as the status records something.
func (p pruner) findTerminating(ctx context.Context, s *state) (loop.Next, error) {
	if s.current && !termination.Some(s.ks.Status) {
		return loop.Next{}, nil
	}
	var err error
	s.stale.terminating, err = p.remains.Find(ctx, termination.Query{
		Of: s.ks, Owned: slices.Concat(s.desired, s.stale.Staying(), s.stale.retained), Removed: s.deletedObjects(), Seen: s.seen, Beneath: s.stale.descendants,
	})
	return loop.Next{After: s.stale.terminating.After()}, err
}

// deletedObjects returns the objects that left this revision and that are deleted on the control plane, or being deleted. Objects
// that stay there on purpose are not among them.
func (s *state) deletedObjects() []inventory.Entry {
	deleted := inventory.Union(s.switchover.pruned, s.stale.Deleted)
	return slices.DeleteFunc(slices.Clone(s.diff.Removed), func(e inventory.Entry) bool {
		obj := s.seen[e.ID]
		return obj != nil && obj.GetDeletionTimestamp() == nil && !slices.ContainsFunc(deleted, func(d inventory.Entry) bool { return d.ID == e.ID })
	})
}
