package revisiongate

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// deepest is how many Kustomizations are looked at above one. Who makes his own maker would else be looked for without an end.
const deepest = 20

// lives are the Kustomizations that exist, by what their deletion would do.
type lives map[client.ObjectKey]life

// life is what is known of a Kustomization that may be deleted.
type life struct {
	// maker is the Kustomization that made it; empty for none.
	maker client.ObjectKey
	// deletes says that what it holds goes with it, and ending that this has begun and nothing holds it up.
	deletes, ending bool
	// ks is the Kustomization as it was last seen.
	ks *kustomizev1.Kustomization
}

// retired are the Kustomizations that retire, with the overrides that counted by then for what they hold. What is not among that was found
// as it is after a start.
type retired map[client.ObjectKey]map[inventory.ID]left

// observe records an event of a Kustomization; nil is one that is gone. It reports whether that changes anything for what it holds.
func (l lives) observe(owner client.ObjectKey, ks *kustomizev1.Kustomization) bool {
	before, known := l[owner]
	if ks == nil {
		delete(l, owner)
		return known
	}
	now := life{deletes: inventory.Deletes(ks), ks: before.ks}
	now.maker, _ = inventory.OwnerOf(ks)
	now.ending = !ks.DeletionTimestamp.IsZero() && !apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.StalledCondition)
	differs := known && now != before
	now.ks = ks
	l[owner] = now
	return differs
}

// retires reports whether a Kustomization goes, or is about to, with what it holds: it is being deleted, or left the revision of the one
// that made it, or that one retires in turn. What it holds stays as it stands until then: no revision has it anywhere else.
func (l lives) retires(owner client.ObjectKey, from leaving, suspended suspends) bool {
	for range deepest {
		it := l[owner]
		if !it.deletes {
			return false
		}
		if _, left := from[it.maker][inventory.OfKustomization(owner)]; it.ending || left && !suspended[it.maker] {
			return true
		}
		owner = it.maker
	}
	return false
}

// retire finds out whether a Kustomization and those that it made retire from now on, and keeps the overrides that count by now for what those
// hold: which ones did is not known of one that retired before the watch began, which is the first that is heard of it. It returns all of them.
func retire(ctx context.Context, t *Tracker, owner client.ObjectKey, first bool) []client.ObjectKey {
	t.mu.Lock()
	all := t.lives.madeBy(owner)
	begun := t.retired.begin(all, func(o client.ObjectKey) bool { return t.lives.retires(o, t.leaving, t.suspends) })
	kustomizations := t.lives.among(begun)
	t.mu.Unlock()
	held := map[client.ObjectKey][]selector.Resource{}
	if !first {
		held = t.watches.held(ctx, kustomizations)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range begun {
		t.retired.keep(o, held[o], &t.overrides, t.mixed)
	}
	return all
}

// held returns what overrides select by, of the templates that Kustomizations hold.
func (w watches) held(ctx context.Context, owners []*kustomizev1.Kustomization) map[client.ObjectKey][]selector.Resource {
	out := map[client.ObjectKey][]selector.Resource{}
	for _, ks := range owners {
		entries, err := inventory.Here(ks)
		if err != nil {
			continue // whoever applies it reports that
		}
		out[client.ObjectKeyFromObject(ks)] = w.resources(ctx, entries)
	}
	return out
}

// among are those of some Kustomizations that exist.
func (l lives) among(some []client.ObjectKey) (out []*kustomizev1.Kustomization) {
	for _, owner := range some {
		if ks := l[owner].ks; ks != nil {
			out = append(out, ks)
		}
	}
	return out
}

// kustomizationsIn are the Kustomizations among entries.
func kustomizationsIn(entries []inventory.Entry) (out []client.ObjectKey) {
	for _, e := range entries {
		if key := (client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}); e.ID == inventory.OfKustomization(key) {
			out = append(out, key)
		}
	}
	return out
}

// begin are those of some Kustomizations that retire from now on, by what they hold. Those that do not are forgotten.
func (r retired) begin(some []client.ObjectKey, retires func(client.ObjectKey) bool) (begun []client.ObjectKey) {
	for _, owner := range some {
		_, known := r[owner]
		switch is := retires(owner); {
		case is && !known:
			begun = append(begun, owner)
		case !is:
			delete(r, owner)
		}
	}
	return begun
}

// keep records the overrides that count for what a Kustomization holds that retires. What of it was recorded before stays so.
func (r retired) keep(owner client.ObjectKey, held []selector.Resource, now *overrides, mixed map[client.ObjectKey]bool) {
	if r[owner] != nil {
		return
	}
	r[owner] = map[inventory.ID]left{}
	for _, resource := range held {
		found, _, known := now.inForce(resource, owner, mixed)
		r[owner][idOf(resource)] = left{overrides: found, known: known}
	}
}

// madeBy are a Kustomization and those that it made, directly or not.
func (l lives) madeBy(owner client.ObjectKey) []client.ObjectKey {
	made := map[client.ObjectKey]map[client.ObjectKey]bool{}
	for key, it := range l {
		if made[it.maker] == nil {
			made[it.maker] = map[client.ObjectKey]bool{}
		}
		made[it.maker][key] = true
	}
	return reached(owner, func(by client.ObjectKey) map[client.ObjectKey]bool { return made[by] })
}
