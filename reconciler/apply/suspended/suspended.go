// Package suspended keeps the status of suspended Kustomizations up to date.
//
// In go changes that watches of templates report, and the status of a suspended Kustomization; out comes a status with
// the objects that others have changed or deleted since, and what is still being deleted of what left it. It writes
// nothing else: drift is corrected once the Kustomization is resumed. Changes during a restart, and of kinds that no
// loop watches, are not noticed.
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
	"github.com/flotilla-io/flotilla/reconciler/apply/termination"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Keeper keeps the status of suspended Kustomizations up to date. Use New. It is safe for use by several goroutines.
type Keeper struct {
	own    kustomizations.Store
	finder termination.Finder

	mu    sync.Mutex
	byKey map[client.ObjectKey]*watched
}

// watched is what is known of a suspended Kustomization.
type watched struct {
	// ignores says that the spec ignores fields. Changes may then be of these, so that only deletions count.
	ignores bool
	// edits are the changes since the status was last written.
	edits map[inventory.ID]edit
}

// edit is a change of an object: digests of its content at first, and now; empty for an object that does not exist.
type edit struct {
	was, is string
	// adds says that fields were only added. Git has no value for these, so that they are no drift.
	adds     bool
	nameless bool
}

// New returns a Keeper that watches no Kustomization.
func New(own kustomizations.Store, finder termination.Finder) *Keeper {
	return &Keeper{own: own, finder: finder, byKey: map[client.ObjectKey]*watched{}}
}

// Forget drops what is known of a Kustomization that is resumed or gone.
func (k *Keeper) Forget(key client.ObjectKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byKey, key)
}

// Changed records a change of an object; before is nil for a creation, and after for a deletion. It returns the
// suspended Kustomization whose status has to be updated, and whether there is one.
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
	owned, err := inventory.Here(ks)
	if err != nil {
		owned = nil // its run reports that, once it is resumed
	}
	edits := k.watch(ks)
	after := ks.DeepCopy()
	inventory.RecordEdited(&after.Status, merge(inventory.EditedIn(ks.Status), edits, inventory.IDsOf(owned)))
	var result reconcile.Result
	if termination.Some(ks.Status) {
		found, err := k.finder.Find(ctx, termination.Query{Of: ks, Owned: owned})
		if err != nil {
			return result, err
		}
		found.Record(&after.Status)
		if ready := apimeta.FindStatusCondition(after.Status.Conditions, meta.ReadyCondition); ready != nil {
			ready.Message = found.Describe(ready.Message)
		}
		result.RequeueAfter = found.After()
	}
	if err := k.own.PatchStatus(ctx, ks, after); err != nil {
		return reconcile.Result{}, err
	}
	k.drop(client.ObjectKeyFromObject(ks), edits)
	return result, nil
}

// watch begins to record changes for a Kustomization, if it does not yet, and returns those that are recorded.
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

// drop drops the edits that the status has by now, unless the object has changed again.
func (k *Keeper) drop(key client.ObjectKey, edits map[inventory.ID]edit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.byKey[key]
	if w == nil {
		return
	}
	maps.DeleteFunc(w.edits, func(id inventory.ID, e edit) bool { return edits[id] == e })
}

// merge returns the recorded edits together with newer ones, without objects that are not owned.
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
		if e.is == was.Was || was.Was == "" { // back to what it was, or created since: no drift
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

// exempt reports whether the annotations or labels from Git leave an object to others once it is created.
func exempt(obj *unstructured.Unstructured) bool {
	const ssa, reconciles = "/ssa", "/reconcile"
	for _, marks := range []map[string]string{obj.GetAnnotations(), obj.GetLabels()} {
		if marks[kustomizev1.GroupVersion.Group+ssa] != "" || marks[kustomizev1.GroupVersion.Group+reconciles] == kustomizev1.DisabledValue {
			return true
		}
	}
	return false
}

// content returns the part of an object that people write: not its status, nor what the control plane annotates.
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

// digest returns a digest of an object's content; empty for nil.
func digest(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	data, err := json.Marshal(content(obj))
	if err != nil {
		return "" // cannot happen for an object from the server
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// keeps reports whether is has all fields of was, with the same values; it may have more.
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
