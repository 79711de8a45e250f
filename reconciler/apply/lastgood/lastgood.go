// Package lastgood corrects drift from the revision that a Kustomization applied last, while a newer one is refused.
//
// In goes a Kustomization, whose status records what that was; out come the changes that corrected drift.
// It writes objects that the Kustomization owns, as its account, and nothing where the same
// artifact would be built to something else by now. It deletes nothing, and leaves existing kinds and
// namespaces as they are, as the newer revision may have written them.
package lastgood

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// Builder turns artifacts into objects.
type Builder interface {
	Build(ctx context.Context, in builder.Input) ([]*unstructured.Unstructured, error)
}

// Restorer corrects drift from last good revisions. Use New.
type Restorer struct {
	builder Builder
	applier *applier.Applier
}

// New returns a Restorer.
func New(builder Builder, applier *applier.Applier) Restorer {
	return Restorer{builder: builder, applier: applier}
}

// Request asks to restore the last good revision of a Kustomization.
type Request struct {
	// Build says how the artifact is built; the artifact itself is that of Record.
	Build builder.Input
	// Record says what was applied.
	Record Record
	// As writes the objects, as the account of the Kustomization.
	As client.Client
	// Gone are objects that are not created again, as they have left the Kustomization.
	Gone map[inventory.ID]bool
}

// Restored is what Restore found and changed.
type Restored struct {
	// Objects are those of the revision; empty if its artifact is built to something else by now.
	Objects []inventory.Entry
	// Changes are those that were made.
	Changes []applier.Change
	// Taken are those of its objects that other Kustomizations own by now.
	Taken []inventory.ID
}

// Restore applies the objects of a last good revision that have drifted. It leaves an object alone that
// another Kustomization owns by now.
func (r Restorer) Restore(ctx context.Context, req Request) (Restored, error) {
	in := req.Build
	in.Digest, in.Revision, in.Keep = req.Record.Artifact, req.Record.Revision, false
	objects, err := r.builder.Build(ctx, in)
	if err != nil {
		return Restored{}, err
	}
	if digest, _ := builder.Digest(objects); digest != req.Record.Objects {
		return Restored{}, nil
	}
	owned, err := inventory.Here(in.Kustomization)
	if err != nil {
		return Restored{}, err
	}
	owner := client.ObjectKeyFromObject(in.Kustomization)
	seen, err := r.applier.Observe(ctx, owner, owned)
	if err != nil {
		return Restored{}, err
	}
	plan, err := r.applier.Check(ctx, applier.Set{
		Owner: owner, Objects: objects, Writer: req.As, Force: in.Kustomization.Spec.Force, Ignore: applier.IgnoreRules(in.Kustomization),
	}, seen)
	if err != nil {
		return Restored{}, fmt.Errorf("keep revision %s: %w", req.Record.Revision, err)
	}
	var out Restored
	plan.Changes, out.Taken = ours(plan.Changes, owner, owned, req.Gone)
	if _, err = r.applier.Apply(ctx, plan, seen, func(context.Context) error { return nil }); err != nil {
		return out, fmt.Errorf("keep revision %s: %w", req.Record.Revision, err)
	}
	out.Changes = plan.Changes
	out.Objects, err = inventory.Of(objects)
	return out, err
}

// ours returns the changes that restore what the owner still owns, and the objects that others have taken over. It
// leaves out objects in gone that do not exist, and definitions that do.
func ours(changes []applier.Change, owner client.ObjectKey, owned []inventory.Entry, gone map[inventory.ID]bool) (kept []applier.Change, taken []inventory.ID) {
	mine := map[inventory.ID]bool{}
	for _, e := range owned {
		mine[e.ID] = true
	}
	for _, c := range changes {
		id := inventory.IDOf(c.Desired)
		defines := inventory.StageOf(c.Desired.GroupVersionKind().GroupKind()) == inventory.Definitions
		switch {
		case !mine[id]:
		case c.Owner != client.ObjectKey{} && c.Owner != owner && !c.Shares:
			taken = append(taken, id)
		case c.Action == applier.Created && gone[id], c.Action != applier.Created && defines:
		default:
			kept = append(kept, c)
		}
	}
	return kept, taken
}

// InUse returns a function that lists the artifacts which Kustomizations of a source of a kind applied last, so that
// they are not collected. Those of other namespaces count if tenancy lets them use the source.
func InUse(hub client.Reader, rules tenancy.Rules, kind string) func(ctx context.Context, key client.ObjectKey) ([]artifact.Used, error) {
	return func(ctx context.Context, key client.ObjectKey) ([]artifact.Used, error) {
		source := inventory.Source{Kind: kind, ObjectKey: key}
		var all kustomizev1.KustomizationList
		among := []client.ListOption{client.UnsafeDisableDeepCopy}
		if !rules.AllowCrossNamespace {
			among = append(among, client.InNamespace(source.Namespace))
		}
		if err := hub.List(ctx, &all, among...); err != nil {
			return nil, fmt.Errorf("list the Kustomizations of %s: %w", source, err)
		}
		var used []artifact.Used
		for i := range all.Items {
			if r := In(all.Items[i].Status); r.Artifact != "" && inventory.SourceOf(&all.Items[i]) == source {
				used = append(used, artifact.Used{Digest: r.Artifact, Revision: r.Revision})
			}
		}
		slices.SortFunc(used, func(a, b artifact.Used) int { return cmp.Compare(a.Digest, b.Digest) })
		return slices.CompactFunc(used, func(a, b artifact.Used) bool { return a.Digest == b.Digest }), nil
	}
}
