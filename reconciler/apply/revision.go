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
	"github.com/flotilla-io/flotilla/reconciler/apply/actors"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/limits"
	"github.com/flotilla-io/flotilla/reconciler/apply/losses"
	"github.com/flotilla-io/flotilla/reconciler/apply/remains"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/withdrawals"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// compare finds out whether the files of a new artifact that the Kustomization reads are those that are applied
// already. Such a revision is not built, only reported. Unless other Kustomizations depend on this one, the report
// waits behind Kustomizations that the revision may change.
func (r *Reconciler) compare(ctx context.Context, s *state) (loop.Next, error) {
	same, err := unchanged(ctx, r.deps.Builder, s)
	if err != nil || !same {
		return loop.Next{}, err
	}
	awaited, err := dependencies.Some(ctx, r.deps.Hub, s.owner)
	if err != nil || !s.last.moves(s, !awaited) {
		return loop.Next{}, err
	}
	if len(siblings.KeysIn(s.desired)) == 0 && s.ks.Spec.KubeConfig == nil {
		r.heritage.siblings.Learn(s.ks, s.artifact(), siblings.Wants{Entries: s.desired})
	}
	if s.yields = !awaited; s.yields {
		return loop.Next{Done: true, After: minimumPause}, nil
	}
	s.current, s.sameContent = true, true
	return loop.Next{}, nil
}

// unchanged reports whether the files of the artifact that the Kustomization reads are those that are applied already.
func unchanged(ctx context.Context, b Builder, s *state) (bool, error) {
	from, stands := s.last.standsAt(s)
	if !stands {
		return false, nil
	}
	return b.Same(ctx, builder.Input{Kustomization: s.ks, Digest: s.source.digest, Revision: s.source.revision, Retry: intervals.Retry(s.ks)}, from)
}

// awaitDependencies ends a run while a dependency is not ready. It also finds out whether the revision changes nothing
// here: the wait is then not blamed on it.
func (r *Reconciler) awaitDependencies(ctx context.Context, s *state) (loop.Next, error) {
	next, err := r.before.awaitDependencies(ctx, s)
	if outcome := loop.As(err, ""); outcome != nil && outcome.Class != loop.ClassStalled {
		same, unread := unchanged(ctx, r.deps.Builder, s) // the build reports an artifact that cannot be read
		s.unchanged = same && unread == nil
	}
	return next, err
}

// build builds the artifact to the objects of the revision.
func (r *Reconciler) build(ctx context.Context, s *state) (loop.Next, error) {
	s.tried = true
	objects, err := r.deps.Builder.Build(ctx, builder.Input{
		Kustomization: s.ks, Digest: s.source.digest, Revision: s.source.revision, As: s.actor, Retry: intervals.Retry(s.ks), Keep: true, Reveal: s.last.secrets.Keep, Spare: s.last.secrets.Spare, Omitted: s.omitted.Add,
	})
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

// check compares the revision with the hub, or the cluster of spec.kubeConfig. If that would not accept one of its
// objects, the revision is refused as a whole.
func (r *Reconciler) check(ctx context.Context, s *state) (loop.Next, error) {
	plan, err := s.diff.at.Applier.Check(ctx, applier.Set{
		Owner: s.owner, Objects: s.objects, Writer: s.diff.at, Force: s.ks.Spec.Force, Ignore: applier.IgnoreRules(s.ks),
	}, s.seen)
	if err != nil {
		return loop.Next{}, classify(ctx, r.actors, s, err)
	}
	s.plan = plan
	// Check has removed the namespace, which is set on all objects, from cluster-scoped ones: read the IDs again.
	if s.desired, err = inventory.Of(s.objects); err != nil {
		return loop.Next{}, loop.Stalled(builder.ReasonDuplicateObject, err)
	}
	s.diff.Diff = inventory.Compare(s.diff.owned, s.desired)
	applying(s.last, s.desired)
	return loop.Next{}, r.before.limits.Grow(ctx, s.ks, limits.Size{Objects: int64(len(s.desired)), Bytes: s.bytes})
}

// classify gives a refusal the reason of its first finding. It is tried again, as
// another object on the hub may be all that is missing.
func classify(ctx context.Context, who *actors.Actors, s *state, err error) error {
	var refusal *applier.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	if !s.diff.at.Outside() { // elsewhere other accounts act
		err = who.Explained(ctx, s.actor, err)
	}
	return loop.Waiting(refusal.Reason(), intervals.Retry(s.ks), err)
}

// brake refuses a revision that would delete too much, or a precious object, on the hub or in clusters.
func (r *Reconciler) brake(ctx context.Context, s *state) (loop.Next, error) {
	may := s.allowance(s.source.revision, nil)
	s.leaving.refused = true // also if this phase fails: nothing may be recorded as allowed before it ends well
	revision := withdrawals.Revision{
		Name: s.source.revision, Changes: s.plan.Changes, Seen: s.seen, Removed: inventory.IDsOf(s.diff.Removed), Allowed: may,
	}
	if r.deps.Templates != nil {
		revision.Labels = withdrawals.LabelsIn(ctx, r.deps.Templates)
	}
	err := withdrawals.Check(ctx, r.deps.Hub, revision)
	if refusal := (*withdrawals.Refusal)(nil); errors.As(err, &refusal) {
		err = loop.Waiting(refusal.Reason(), intervals.Retry(s.ks), err) // tried again, as the missing cluster may join
	}
	if err != nil {
		return loop.Next{}, err
	}
	err = r.losses.Check(ctx, *r.opts.Brake, losses.Removal{
		Of: s.ks, Revision: s.source.revision, By: losses.Revision{Kept: r.heritage.kept(s), Places: losses.Places(s.plan.Changes)}, May: may,
		Owned: s.diff.owned, Deleted: s.leaving.Deleted, Desired: s.desired, Stays: s.leaving.Staying(),
	})
	if refusal := (*inventory.Refusal)(nil); errors.As(err, &refusal) {
		s.last.waitsForSiblings(s.source.Source, true) // another Kustomization may still take over what is dropped
	}
	if err != nil {
		return loop.Next{}, err
	}
	s.leaving.refused = false
	return loop.Next{}, withdrawals.LetGo(ctx, r.deps.Hub, revision)
}

// apply writes what differs.
func (r *Reconciler) apply(ctx context.Context, s *state) (loop.Next, error) {
	if !s.diff.at.Outside() {
		r.lastApplied.takes(s.owner, s.plan.Changes)
	}
	done, err := s.diff.at.Applier.Apply(ctx, s.plan, s.seen, r.switcher.beforeRules(s))
	if err != nil {
		return loop.Next{}, classify(ctx, r.actors, s, err)
	}
	if !done {
		return loop.Next{}, awaitDefinitions(ctx, s.diff.at.Applier, s)
	}
	return loop.Next{}, nil
}

// awaitDefinitions returns an error that waits for kinds and namespaces which are not served yet: a short time, and
// once that took longer than spec.timeout, as long as after any failure.
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

// outlast finds out what is still there of what left this revision and earlier ones. For a revision that was applied
// before it looks again as long as the status records something.
func (d departures) outlast(ctx context.Context, s *state) (loop.Next, error) {
	if s.current && !remains.Some(s.ks.Status) {
		return loop.Next{}, nil
	}
	var err error
	s.leaving.left, err = d.remains.Find(ctx, remains.Query{
		Of: s.ks, Owned: slices.Concat(s.desired, s.leaving.Staying(), s.leaving.kept), Removed: s.gone(), Seen: s.seen, Beneath: s.leaving.beneath,
	})
	return loop.Next{After: s.leaving.left.After()}, err
}

// gone returns the objects that left this revision and that are deleted on the control plane, or being deleted. Objects
// that stay there on purpose are not among them.
func (s *state) gone() []inventory.Entry {
	deleted := inventory.Union(s.switched.pruned, s.leaving.Deleted)
	return slices.DeleteFunc(slices.Clone(s.diff.Removed), func(e inventory.Entry) bool {
		obj := s.seen[e.ID]
		return obj != nil && obj.GetDeletionTimestamp() == nil && !slices.ContainsFunc(deleted, func(d inventory.Entry) bool { return d.ID == e.ID })
	})
}
