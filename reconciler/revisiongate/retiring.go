package revisiongate

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
}

// observe records an event of a Kustomization; nil is one that is gone. It reports whether that changes anything for what it holds.
func (l lives) observe(owner client.ObjectKey, ks *kustomizev1.Kustomization) bool {
	before, known := l[owner]
	if ks == nil {
		delete(l, owner)
		return known
	}
	now := life{deletes: inventory.Deletes(ks)}
	now.maker, _ = inventory.OwnerOf(ks)
	now.ending = !ks.DeletionTimestamp.IsZero() && !apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.StalledCondition)
	l[owner] = now
	return known && now != before
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
