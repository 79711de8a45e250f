package revisiongate

import (
	"context"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// left is an object that left a revision and is not gone yet: it stays as it was.
type left struct {
	// overrides are those that counted for it, if that is known.
	overrides []policyv1alpha1.Override
	known     bool
}

// leaving are the objects that left the revisions of Kustomizations and still exist.
type leaving map[client.ObjectKey]map[inventory.ID]left

// suspends are the suspended Kustomizations: what left them is carried like any other template.
type suspends map[client.ObjectKey]bool

// add records an object. What left before stays as it was then.
func (l leaving) add(owner client.ObjectKey, id inventory.ID, as left) {
	if l[owner] == nil {
		l[owner] = map[inventory.ID]left{}
	}
	if _, before := l[owner][id]; !before {
		l[owner][id] = as
	}
}

// keep records what leaves from now on, with the overrides that count for it by now.
func (l leaving) keep(owner client.ObjectKey, some []selector.Resource, now *overrides, mixed map[client.ObjectKey]bool) {
	for _, r := range some {
		found, _, known := now.inForce(r, owner, mixed)
		l.add(owner, idOf(r), left{overrides: found, known: known})
	}
}

// fresh returns what the status of a Kustomization says that is leaving it, and what is not recorded yet.
func (l leaving) fresh(owner client.ObjectKey, ks *kustomizev1.Kustomization) []inventory.Entry {
	if ks == nil {
		return nil
	}
	ids := slices.DeleteFunc(inventory.Leaving(ks.Status), func(id inventory.ID) bool { _, known := l[owner][id]; return known })
	if len(ids) == 0 {
		return nil
	}
	entries, err := inventory.Here(ks)
	if err != nil {
		return nil // whoever applies it reports that
	}
	return slices.DeleteFunc(entries, func(e inventory.Entry) bool { return !slices.Contains(ids, e.ID) })
}

// observe reads what is leaving from the status of a Kustomization that is not being switched; nil is one
// that is gone. From one that is being deleted it leaves until that has deleted it, or leaves what it applied. It reports whether that is another than before.
func (l leaving) observe(owner client.ObjectKey, ks *kustomizev1.Kustomization) (differs bool) {
	stated := map[inventory.ID]bool{}
	if ks != nil && (ks.DeletionTimestamp.IsZero() || inventory.Deletes(ks)) {
		for _, id := range inventory.Leaving(ks.Status) {
			stated[id] = true
		}
	}
	for id := range l[owner] {
		if !stated[id] {
			delete(l[owner], id)
			differs = true
		}
	}
	for id := range stated {
		_, before := l[owner][id]
		differs = differs || !before
		l.add(owner, id, left{})
	}
	if len(l[owner]) == 0 {
		delete(l, owner)
	}
	return differs
}

// observe learns whether a Kustomization is suspended; nil is one that is gone. It reports whether one is that was not.
func (s suspends) observe(owner client.ObjectKey, ks *kustomizev1.Kustomization) bool {
	if ks == nil || !ks.Spec.Suspend {
		delete(s, owner)
		return false
	}
	was := s[owner]
	s[owner] = true
	return !was
}

// resources returns what overrides select by, of those entries that are templates.
func (w watches) resources(ctx context.Context, entries []inventory.Entry) []selector.Resource {
	var out []selector.Resource
	for _, e := range entries {
		key := templatestore.Key{GroupVersionKind: e.ID.GroupKind.WithVersion(e.Version), Namespace: e.ID.Namespace, Name: e.ID.Name}
		if obj, presence, err := w.templates.Get(ctx, key); err == nil && presence == templatestore.Present {
			out = append(out, selector.ResourceOf(obj))
		}
	}
	return out
}

// Left reports whether a template left the Kustomization that it carries the labels of, which it returns, or goes with that: from where
// it has been pruned it does not come back. Stays reports whether it is left as it stands, too, which it is not where
// that is suspended.
func (t *Tracker) Left(template *unstructured.Unstructured) (owner client.ObjectKey, left, stays bool) {
	owner, owned := inventory.OwnerOf(template)
	if !owned {
		return owner, false, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if _, left = t.leaving[owner][inventory.IDOf(template)]; left {
		return owner, true, !t.suspends[owner]
	}
	retires := t.lives.retires(owner, t.leaving, t.suspends)
	return owner, retires, retires
}

func idOf(r selector.Resource) inventory.ID {
	return inventory.ID{Namespace: r.Namespace, Name: r.Name, GroupKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()}
}
