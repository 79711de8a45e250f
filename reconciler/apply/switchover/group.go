package switchover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// Groups find out with whom Kustomizations exchange objects. Use New. They are safe for use by several goroutines.
type Groups struct {
	hub, live client.Reader
	order     order
	siblings  *siblings.Index
	forecast  forecast
	clock     clock.PassiveClock

	mu    sync.Mutex
	since map[client.ObjectKey]since
}

// since is when it was asked first, and last, whether a Kustomization still waits for others.
type since struct{ first, asked time.Time }

// Differs reports whether an artifact may hold something else for a Kustomization than the one that it has applied last.
type Differs func(ctx context.Context, ks *kustomizev1.Kustomization, at siblings.Artifact) (bool, error)

// New returns Groups; hub reads from a cache, and live without one.
func New(hub, live client.Reader, index *siblings.Index, differs Differs, clk clock.PassiveClock) *Groups {
	order := order{hub: hub, live: live}
	return &Groups{
		hub: hub, live: live, order: order, siblings: index, clock: clk, since: map[client.ObjectKey]since{},
		forecast: forecast{siblings: index, order: order, differs: differs},
	}
}

// Forget drops what is known of a Kustomization that waits no more.
func (x *Groups) Forget(key client.ObjectKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.since, key)
}

// Query asks with whom a Kustomization exchanges objects.
type Query struct {
	Of *kustomizev1.Kustomization
	// At is the artifact that it is about to apply.
	At siblings.Artifact
	// Changes are what it would do, and Leaving what it deletes, and hands over.
	Changes []applier.Change
	Leaving siblings.Handover
	// Removed is what left its revision, and Seen what the control plane has of it, by its labels.
	Removed []inventory.Entry
	Seen    applier.Observed

	// arriving are the Kustomizations that the artifact is about to bring. With sets it.
	arriving func() (arrivals, error)
}

// With returns the Kustomizations of the source from which one takes objects at an artifact, and those to which it gives some,
// sorted; also those of which its status says so, and those that the status of one of them names: one in between may be gone before
// they are switched. It returns none of a revision that is written already.
func (x *Groups) With(ctx context.Context, q Query) ([]client.ObjectKey, error) {
	isSwitched := apimeta.FindStatusCondition(q.Of.Status.Conditions, revisiongate.Condition)
	if isSwitched == nil && lastgood.In(q.Of.Status).Artifact == q.At.Digest && !writes(q) {
		return nil, nil
	}
	own := client.ObjectKeyFromObject(q.Of)
	all, err := x.all(ctx)
	if err != nil {
		return nil, err
	}
	q.arriving = sync.OnceValues(func() (arrivals, error) { return x.forecast.arriving(ctx, all, q.Of, q.At, made(q)) })
	found, err := x.found(ctx, q)
	if err != nil {
		return nil, err
	}
	related, err := x.related(ctx, q, all)
	if err != nil {
		return nil, err
	}
	found = slices.Concat(found, related, naming(all, q.At.Revision, own))
	var out []client.ObjectKey
	if isSwitched != nil {
		out = revisiongate.Partners(isSwitched.Message, q.At.Revision)
	}
	reached := sorted(slices.Concat(found, out), own)
	for i := 0; i < len(reached); i++ {
		with, further, err := x.switchedWith(ctx, q, reached[i])
		if err != nil {
			return nil, err
		}
		out = append(out, with...)
		for _, key := range sorted(further, own) {
			if !slices.Contains(reached, key) {
				reached = append(reached, key)
			}
		}
	}
	return sorted(out, own), nil
}

// naming are the Kustomizations of which the status says that a revision is switched with one: what of theirs has to do with it may
// be gone by now.
func naming(all []kustomizev1.Kustomization, revision string, one client.ObjectKey) []client.ObjectKey {
	var out []client.ObjectKey
	for i := range all {
		c := apimeta.FindStatusCondition(all[i].Status.Conditions, revisiongate.Condition)
		if c != nil && slices.Contains(revisiongate.Partners(c.Message, revision), one) {
			out = append(out, client.ObjectKeyFromObject(&all[i]))
		}
	}
	return out
}

// all returns all Kustomizations. They are the cache's own.
func (x *Groups) all(ctx context.Context) ([]kustomizev1.Kustomization, error) {
	var list kustomizev1.KustomizationList
	if err := x.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Kustomizations: %w", err)
	}
	return list.Items, nil
}

// sorted returns names without those that are empty or own, each once.
func sorted(keys []client.ObjectKey, own client.ObjectKey) []client.ObjectKey {
	keys = slices.DeleteFunc(keys, func(key client.ObjectKey) bool { return key == client.ObjectKey{} || key == own })
	slices.SortFunc(keys, func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(keys)
}

// found are those that hold what is taken, and those that get or have what left.
func (x *Groups) found(ctx context.Context, q Query) ([]client.ObjectKey, error) {
	var out []client.ObjectKey
	for _, c := range q.Changes {
		if c.Takes || c.Writes() && !c.Shares {
			out = append(out, c.Owner)
		}
	}
	for _, e := range q.Leaving.Passing {
		out = append(out, q.Leaving.Successors[e.ID])
	}
	for _, e := range q.Removed {
		if q.Seen[e.ID] != nil {
			continue
		}
		by, err := x.holder(ctx, e)
		if err != nil {
			return nil, err
		}
		out = append(out, by)
	}
	return out, nil
}

// switchedWith returns a Kustomization, unless it is gone, or no sibling, and with one that is being deleted those
// that take what it holds. further are those that its status names. It is read without a cache: who labels an object has said before
// with whom it is switched, and the label is not read from a cache either.
func (x *Groups) switchedWith(ctx context.Context, q Query, key client.ObjectKey) (with, further []client.ObjectKey, err error) {
	ks := &kustomizev1.Kustomization{}
	err = x.live.Get(ctx, key, ks)
	switch {
	case apierrors.IsNotFound(err) && takes(q.Leaving, key):
		return []client.ObjectKey{key}, nil, nil // somebody is about to make it
	case apierrors.IsNotFound(err):
		all, err := q.arriving()
		if _, arrives := all[key]; err != nil || !arrives {
			return nil, nil, err
		}
		return []client.ObjectKey{key}, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
	case !x.forecast.isSibling(ks, q.Of, q.At): // whoever may write an object may put labels on it that name any other
		return nil, nil, nil
	}
	if isSwitched := apimeta.FindStatusCondition(ks.Status.Conditions, revisiongate.Condition); isSwitched != nil {
		further = revisiongate.Partners(isSwitched.Message, q.At.Revision)
	}
	if ks.DeletionTimestamp == nil {
		return []client.ObjectKey{key}, further, nil
	}
	owned, err := inventory.Here(ks)
	if err != nil {
		return []client.ObjectKey{key}, further, nil // whoever deletes it reports that
	}
	answer, err := x.siblings.Ask(ctx, siblings.Query{Of: ks, At: q.At, Objects: owned, Going: siblings.KeysIn(owned)})
	if err != nil {
		return nil, nil, err
	}
	with = slices.DeleteFunc(slices.Collect(maps.Values(answer.Successors)), func(by client.ObjectKey) bool { return by == key })
	return append(with, key), further, nil
}

// takes reports whether a Kustomization takes something of what leaves another one.
func takes(leaving siblings.Handover, key client.ObjectKey) bool {
	return slices.ContainsFunc(leaving.Passing, func(e inventory.Entry) bool { return leaving.Successors[e.ID] == key })
}

// writes reports whether anything is yet to be written, or to be deleted before a revision counts.
func writes(q Query) bool {
	rules, _ := Rules(q.Leaving.Deleted)
	return len(rules) > 0 || slices.ContainsFunc(q.Changes, func(c applier.Change) bool { return c.Takes || c.Writes() })
}

// holder returns the Kustomization that an object's labels name which another one applied; empty for none, and for one that is gone.
func (x *Groups) holder(ctx context.Context, e inventory.Entry) (client.ObjectKey, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(e.GroupVersionKind())
	err := x.live.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, obj)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return client.ObjectKey{}, nil
	case err != nil:
		return client.ObjectKey{}, fmt.Errorf("look who has taken %s: %w", inventory.Describe(e.ID), err)
	}
	by, _ := inventory.OwnerOf(obj)
	return by, nil
}

// Ending returns those of the Kustomizations that are being deleted.
func (x *Groups) Ending(ctx context.Context, with []client.ObjectKey) ([]client.ObjectKey, error) {
	var out []client.ObjectKey
	for _, key := range with {
		ks := &kustomizev1.Kustomization{}
		if err := x.hub.Get(ctx, key, ks); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		if ks.DeletionTimestamp != nil {
			out = append(out, key)
		}
	}
	return out, nil
}
