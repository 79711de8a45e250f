package health

import (
	"context"
	"fmt"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var kustomizations = kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()

// remains is an object that left a Kustomization, with the Works that still hold it.
type remains struct {
	id    inventory.ID
	works []*workv1alpha1.Work
}

// Remaining returns those of the removed objects that clusters still hold and that the owner, or a Kustomization
// among them, applied; and the Kustomizations among them that applied such an object.
func (r *Reader) Remaining(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error) {
	if len(removed) == 0 {
		return nil, nil
	}
	fleet, err := r.fleet(ctx)
	if err != nil {
		return nil, err
	}
	owners := ownersAmong(owner, removed)
	found, err := r.remaining(ctx, owners, removed, namesOf(fleet))
	if err != nil {
		return nil, err
	}
	holds := map[inventory.ID]bool{}
	for _, f := range found {
		other, err := takenOver(ctx, r, f, owners)
		if err != nil {
			return nil, err
		}
		if other {
			continue
		}
		holds[f.id] = true
		for _, w := range f.works {
			if by, carried := carriedBy(w, f.id); carried && by != owner {
				holds[inventory.ID{Namespace: by.Namespace, Name: by.Name, GroupKind: kustomizations}] = true
			}
		}
	}
	var ids []inventory.ID
	for _, id := range removed {
		if holds[id] {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// takenOver reports whether a Kustomization that is none of the owners has an object by now, although its Works name one of
// them still: these follow.
func takenOver(ctx context.Context, r *Reader, f remains, owners []client.ObjectKey) (bool, error) {
	var obj inventory.Labelled
	if f.id.GroupKind == namespaces {
		namespace, err := r.namespace(ctx, f.id.Name)
		if err != nil || namespace == nil {
			return false, err
		}
		obj = namespace
	} else {
		template, presence, err := r.template(ctx, f.works[0], f.id)
		if err != nil || presence != templatestore.Present {
			return false, err
		}
		obj = template
	}
	now, owned := inventory.OwnerOf(obj)
	return owned && !slices.Contains(owners, now), nil
}

// RemainingParts returns a part for each of the removed objects that clusters still hold and the control plane does
// not, if the owner applied it, or a Kustomization among them that is gone. The labels in the Works' manifests
// decide who applied an object: that a status lists it is no evidence. It reads caches only.
func (r *Reader) RemainingParts(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]rollup.Part, error) {
	if len(removed) == 0 {
		return nil, nil
	}
	fleet, err := r.fleet(ctx)
	if err != nil {
		return nil, err
	}
	clusters, silent := namesOf(fleet), rollup.SilencesOf(fleet)
	owners, err := r.gone(ctx, owner, ownersAmong(owner, removed))
	if err != nil {
		return nil, err
	}
	found, err := r.remaining(ctx, owners, removed, clusters)
	if err != nil {
		return nil, err
	}
	var parts []rollup.Part
	for _, f := range found {
		var works []*workv1alpha1.Work
		for _, w := range f.works {
			leaves, err := r.leaves(ctx, w, f.id)
			if err != nil {
				return nil, err
			}
			if leaves {
				works = append(works, w)
			}
		}
		if len(works) > 0 {
			parts = append(parts, rollup.Part{Object: objectName(f.id), Leaving: leavingParts(works, silent)})
		}
	}
	return parts, nil
}

// ownersAmong returns the owner, and the Kustomizations among what left it: what these applied left with them.
func ownersAmong(owner client.ObjectKey, removed []inventory.ID) []client.ObjectKey {
	owners := []client.ObjectKey{owner}
	for _, id := range removed {
		if id.GroupKind == kustomizations {
			owners = append(owners, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
		}
	}
	return owners
}

// gone returns the owner, and those of the others that are gone or being deleted. One that exists reports in its own
// status what is left of it.
func (r Deps) gone(ctx context.Context, owner client.ObjectKey, owners []client.ObjectKey) ([]client.ObjectKey, error) {
	out := []client.ObjectKey{owner}
	for _, key := range owners {
		ks := &kustomizev1.Kustomization{}
		err := r.Hub.Get(ctx, key, ks, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		if key != owner && (err != nil || ks.DeletionTimestamp != nil) {
			out = append(out, key)
		}
	}
	return out, nil
}

// remaining returns those of the objects that have Works with the labels of one of the owners, and these Works.
func (r *Reader) remaining(ctx context.Context, owners []client.ObjectKey, removed []inventory.ID, clusters []string) ([]remains, error) {
	var out []remains
	for _, id := range removed {
		works, err := r.worksOf(ctx, id, clusters)
		if err != nil {
			return nil, err
		}
		works = slices.DeleteFunc(works, func(w *workv1alpha1.Work) bool {
			by, carried := carriedBy(w, id)
			return !carried || !slices.Contains(owners, by)
		})
		if len(works) > 0 {
			out = append(out, remains{id, works})
		}
	}
	return out, nil
}

// worksOf returns the Works of an object, whose binding may be gone. They are the cache's own: do not change them.
func (r Deps) worksOf(ctx context.Context, id inventory.ID, clusters []string) ([]*workv1alpha1.Work, error) {
	if id.GroupKind == namespaces {
		return r.worksOfNamespace(ctx, id.Name, clusters)
	}
	key := client.ObjectKey{Namespace: id.Namespace, Name: workv1alpha2.BindingName(id.GroupKind.Kind, id.Name)}
	return r.indexed(ctx, client.MatchingFields{bindings.WorksByOwner: key.String()})
}

// carriedBy returns the Kustomization in the labels of an object's manifest in a Work. False means that there is none,
// or that the Work does not hold the object.
func carriedBy(w *workv1alpha1.Work, id inventory.ID) (client.ObjectKey, bool) {
	for _, m := range w.Spec.Workload.Manifests {
		if carried, obj, ok := inventory.OfManifest(m.Raw); ok && carried == id {
			return inventory.OwnerOf(obj)
		}
	}
	return client.ObjectKey{}, false
}

// leaves reports whether a Work is being removed, or soon will be, as its template is gone. A Work whose template
// exists does not leave: the object may have been left on the control plane on purpose.
func (r *Reader) leaves(ctx context.Context, w *workv1alpha1.Work, id inventory.ID) (bool, error) {
	if w.DeletionTimestamp != nil {
		return true, nil
	}
	if id.GroupKind == namespaces {
		namespace, err := r.namespace(ctx, id.Name)
		return namespace == nil || namespace.DeletionTimestamp != nil, err
	}
	template, presence, err := r.template(ctx, w, id)
	switch {
	case err != nil:
		return false, err
	case presence == templatestore.Present:
		return template.GetDeletionTimestamp() != nil, nil
	case presence == templatestore.Absent:
		return true, nil
	}
	binding, err := r.binding(ctx, id)
	return binding == nil || binding.GetDeletionTimestamp() != nil, err
}

// template returns the template of an object that a Work holds, and whether it exists, which is not known without a store.
func (r Deps) template(ctx context.Context, w *workv1alpha1.Work, id inventory.ID) (*unstructured.Unstructured, templatestore.Presence, error) {
	if r.Templates == nil {
		return nil, templatestore.Unknown, nil
	}
	var kind schema.GroupVersionKind
	for _, m := range w.Spec.Workload.Manifests {
		if carried, obj, ok := inventory.OfManifest(m.Raw); ok && carried == id {
			kind = obj.GroupVersionKind()
		}
	}
	return r.Templates.Get(ctx, templatestore.Key{GroupVersionKind: kind, Namespace: id.Namespace, Name: id.Name})
}

// indexed returns the Works that an index of the cache finds. They are the cache's own: do not change them.
func (r Deps) indexed(ctx context.Context, by client.MatchingFields) ([]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := r.Hub.List(ctx, &list, by, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works: %w", err)
	}
	works := make([]*workv1alpha1.Work, len(list.Items))
	for i := range list.Items {
		works[i] = &list.Items[i]
	}
	return works, nil
}

// leavingParts returns the state of removal in each cluster of the Works, sorted by cluster. Of several Works in a
// cluster the one with the longest reason counts.
func leavingParts(works []*workv1alpha1.Work, silent rollup.Silences) []rollup.ClusterPart {
	byCluster := map[string]rollup.ClusterPart{}
	for _, w := range works {
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if part := rollup.LeavingPart(cluster, w, silent); ok && len(part.Reason) > len(byCluster[cluster].Reason) {
			byCluster[cluster] = part
		}
	}
	var parts []rollup.ClusterPart
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		parts = append(parts, byCluster[cluster])
	}
	return parts
}
