// Package suspended keeps telling of Kustomizations that are suspended.
//
// In go what watches of templates show, and the status of a Kustomization that is suspended; out comes a status that says
// which of its objects others have changed or deleted since, and what is still being deleted of that which left it. It
// writes nothing else: objects are brought back once the Kustomization goes on. What is changed while nobody watches, as
// during a restart, or of a kind that nobody watches, is not noticed.
package suspended

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/remains"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Keeper keeps the statuses of suspended Kustomizations. Use New. It is safe for use by several goroutines.
type Keeper struct {
	own    kustomizations.Store
	finder remains.Finder

	mu    sync.Mutex
	byKey map[client.ObjectKey]*watched
}

// watched is a Kustomization that is suspended.
type watched struct {
	// ignores says that fields are left to others, so that only deletions are noticed.
	ignores bool
	// edits are what was seen since the status was written last.
	edits map[inventory.ID]edit
}

// edit is what became of an object: digests of what it was first, and is now; empty for one that is not there.
type edit struct {
	was, is string
	// adds says that all that was there is as it was: Git says nothing of what is new.
	adds     bool
	nameless bool
}

// New returns a Keeper that watches no Kustomization.
func New(own kustomizations.Store, finder remains.Finder) *Keeper {
	return &Keeper{own: own, finder: finder, byKey: map[client.ObjectKey]*watched{}}
}

// Forget ends what is kept of a Kustomization: it goes on, or is gone.
func (k *Keeper) Forget(key client.ObjectKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byKey, key)
}

// Changed takes in a change of an object, which is nil before it is made and after it is deleted. It returns the
// Kustomization whose status is to be kept then, and whether there is one.
func (k *Keeper) Changed(kind schema.GroupKind, before, after *unstructured.Unstructured) (client.ObjectKey, bool) {
	obj := before
	if obj == nil {
		obj = after
	}
	owner, known := inventory.OwnerOf(obj)
	if !known {
		return owner, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.byKey[owner]
	if w == nil || exempt(obj) {
		return owner, false
	}
	id := inventory.ID{Namespace: obj.GetNamespace(), Name: obj.GetName(), GroupKind: kind}
	e, seen := w.edits[id]
	if !seen {
		e = edit{nameless: obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == gitopsv1alpha1.HoldsInName}
	}
	if !seen || e.adds {
		e.was = digest(before)
		e.adds = before != nil && after != nil && (w.ignores || keeps(content(before), content(after)))
	}
	e.is = digest(after)
	w.edits[id] = e
	return owner, true
}

// Keep brings the status of a suspended Kustomization up to date, and returns when to do so again.
func (k *Keeper) Keep(ctx context.Context, ks *kustomizev1.Kustomization) (reconcile.Result, error) {
	owned, err := inventory.Read(ks.Status.Inventory)
	if err != nil {
		owned = nil // its own run says so, once it goes on
	}
	edits := k.watch(ks)
	after := ks.DeepCopy()
	inventory.RecordEdited(&after.Status, merge(inventory.EditedIn(ks.Status), edits, inventory.IDsOf(owned)))
	var result reconcile.Result
	if remains.Some(ks.Status) {
		found, err := k.finder.Find(ctx, remains.Query{Of: ks, Owned: owned})
		if err != nil {
			return result, err
		}
		found.Record(&after.Status)
		if ready := apimeta.FindStatusCondition(after.Status.Conditions, meta.ReadyCondition); ready != nil {
			ready.Message = found.Describe(ready.Message)
		}
		result.RequeueAfter = found.After()
	}
	if err := k.own.Publish(ctx, ks, after); err != nil {
		return reconcile.Result{}, err
	}
	k.drop(client.ObjectKeyFromObject(ks), edits)
	return result, nil
}

// watch begins to watch a Kustomization, and returns what was seen of it.
func (k *Keeper) watch(ks *kustomizev1.Kustomization) map[inventory.ID]edit {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := client.ObjectKeyFromObject(ks)
	if k.byKey[key] == nil {
		k.byKey[key] = &watched{edits: map[inventory.ID]edit{}}
	}
	k.byKey[key].ignores = len(ks.Spec.Ignore) > 0
	return maps.Clone(k.byKey[key].edits)
}

// drop drops what the status says by now.
func (k *Keeper) drop(key client.ObjectKey, edits map[inventory.ID]edit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.byKey[key]
	if w == nil {
		return
	}
	maps.DeleteFunc(w.edits, func(id inventory.ID, e edit) bool { return edits[id] == e })
}

// merge adds to what was reported what was seen since, of objects that are owned.
func merge(before []inventory.Edited, edits map[inventory.ID]edit, owned []inventory.ID) []inventory.Edited {
	all := map[inventory.ID]inventory.Edited{}
	for _, e := range before {
		all[e.ID] = e
	}
	for id, e := range edits {
		was, known := all[id]
		if !known && e.adds {
			continue
		}
		if !known {
			was = inventory.Edited{ID: id, Was: e.was, Nameless: e.nameless}
		}
		was.Gone = e.is == ""
		all[id] = was
		if e.is == was.Was || was.Was == "" { // as it was, or made by others
			delete(all, id)
		}
	}
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(id inventory.ID) bool { return !slices.Contains(owned, id) })
	inventory.SortIDs(ids)
	var out []inventory.Edited
	for _, id := range ids {
		out = append(out, all[id])
	}
	return out
}

// exempt reports whether an object is left to others once it is made, as Git says.
func exempt(obj *unstructured.Unstructured) bool {
	const ssa, reconciles = "/ssa", "/reconcile"
	for _, marks := range []map[string]string{obj.GetAnnotations(), obj.GetLabels()} {
		if marks[kustomizev1.GroupVersion.Group+ssa] != "" || marks[kustomizev1.GroupVersion.Group+reconciles] == kustomizev1.DisabledValue {
			return true
		}
	}
	return false
}

// content is what people say of an object: not its status, nor what the control plane notes in it.
func content(obj *unstructured.Unstructured) map[string]any {
	out := maps.Clone(obj.Object)
	delete(out, "status")
	keptMetadata := map[string]any{}
	for field, marks := range map[string]map[string]string{"labels": obj.GetLabels(), "annotations": obj.GetAnnotations()} {
		kept := map[string]any{}
		for key, value := range marks {
			if domain, _, _ := strings.Cut(key, "/"); !strings.HasSuffix(domain, "karmada.io") && !strings.HasSuffix(domain, "flotilla.io") {
				kept[key] = value
			}
		}
		keptMetadata[field] = kept
	}
	out["metadata"] = keptMetadata
	return out
}

// digest is one of an object's content; empty for none.
func digest(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	data, err := json.Marshal(content(obj))
	if err != nil {
		return "" // which no object is that came from the server
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// keeps reports whether all that was there is there, and as it was.
func keeps(was, is any) bool {
	before, ok := was.(map[string]any)
	after, also := is.(map[string]any)
	if !ok || !also {
		return equality.Semantic.DeepEqual(was, is)
	}
	for key, value := range before {
		if now, there := after[key]; !there || !keeps(value, now) {
			return false
		}
	}
	return true
}
