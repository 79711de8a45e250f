package termination

import (
	"context"
	"fmt"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// mostReads is up to how many objects of a kind are read one by one; more are listed by their labels.
const mostReads = 20

var (
	namespaces     = schema.GroupKind{Kind: "Namespace"}
	kustomizations = kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()
)

// candidate is an object whose deletion may not have finished. With a UID it is that incarnation only.
type candidate struct {
	id  inventory.ID
	uid types.UID
}

// candidates returns what may still be being deleted: what the status records as terminating; what clusters held by the
// status and do not hold any more; and, of what the revision has deleted, the objects whose deletion takes time
// (Namespaces, and objects with finalizers) and all that is deleted along with Kustomizations.
func candidates(q Query, before, inClusters []inventory.ID) []candidate {
	var out []candidate
	recorded, _ := inventory.TerminatingIn(q.Of.Status)
	for _, t := range recorded {
		out = append(out, candidate{t.ID, t.UID})
	}
	known := map[inventory.ID]bool{}
	for _, id := range inClusters {
		known[id] = true
	}
	for _, id := range before {
		if !known[id] {
			out = append(out, candidate{id: id})
		}
	}
	for _, e := range q.Removed {
		if obj := q.Seen[e.ID]; obj != nil && (e.ID.GroupKind == namespaces || len(obj.GetFinalizers()) > 0 || obj.GetDeletionTimestamp() != nil) {
			out = append(out, candidate{e.ID, obj.GetUID()})
		}
		for _, id := range q.Beneath[e.ID] {
			out = append(out, candidate{id: id})
		}
	}
	return out
}

// suspects is what deleting.find looks at.
type suspects struct {
	owner client.ObjectKey
	// owned are the objects that the Kustomization owns now: these are not leaving.
	owned map[inventory.ID]bool
	// ids are all objects that left the Kustomization, among them other Kustomizations.
	ids        []inventory.ID
	candidates []candidate
}

// owners returns the Kustomization, and the Kustomizations that left it.
func (s suspects) owners() []client.ObjectKey {
	out := []client.ObjectKey{s.owner}
	add := func(id inventory.ID) {
		if key := (client.ObjectKey{Namespace: id.Namespace, Name: id.Name}); id.GroupKind == kustomizations && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	for _, id := range s.ids {
		add(id)
	}
	for _, c := range s.candidates {
		add(c.id)
	}
	return out
}

// deleting finds objects of the control plane that are being deleted.
type deleting struct {
	live   client.Reader
	mapper apimeta.RESTMapper
}

// find returns those of the suspects that are being deleted, sorted, and the other Kustomizations that applied these.
// If a Kustomization is being deleted, objects that it has yet to delete and that finalizers will keep are found as well,
// as ahead: once the Kustomization is gone, nothing else records them. Another Kustomization may take them over until then.
func (d deleting) find(ctx context.Context, s suspects) ([]inventory.Terminating, []inventory.ID, error) {
	byKind, uids := map[schema.GroupKind][]inventory.ID{}, map[inventory.ID]types.UID{}
	for _, c := range s.candidates {
		if _, known := uids[c.id]; known || s.owned[c.id] {
			continue
		}
		uids[c.id] = c.uid
		byKind[c.id.GroupKind] = append(byKind[c.id.GroupKind], c.id)
	}
	owners := s.owners()
	found, by := map[inventory.ID]*metav1.PartialObjectMetadata{}, map[inventory.ID]client.ObjectKey{}
	ends := map[client.ObjectKey]bool{}
	for kind, of := range byKind {
		objects, err := d.read(ctx, kind, of, owners)
		if err != nil {
			return nil, nil, err
		}
		for _, obj := range objects {
			id := inventory.ID{Namespace: obj.GetNamespace(), Name: obj.GetName(), GroupKind: kind}
			another := uids[id] != "" && uids[id] != obj.GetUID()
			if by[id], _ = inventory.OwnerOf(obj); another || s.owned[id] || !slices.Contains(owners, by[id]) {
				continue
			}
			found[id] = obj
			if kind == kustomizations && obj.GetDeletionTimestamp() != nil {
				ends[client.ObjectKeyFromObject(obj)] = true
			}
		}
	}
	maps.DeleteFunc(found, func(id inventory.ID, obj *metav1.PartialObjectMetadata) bool {
		return obj.GetDeletionTimestamp() == nil && (!ends[by[id]] || len(obj.GetFinalizers()) == 0 && id.GroupKind != namespaces)
	})
	ids := slices.Collect(maps.Keys(found))
	inventory.SortIDs(ids)
	out, err := d.terminating(ctx, ids, found)
	return out, appliers(s.owner, ids, by), err
}

// terminating returns objects in the form in which the status records them.
func (d deleting) terminating(ctx context.Context, ids []inventory.ID, found map[inventory.ID]*metav1.PartialObjectMetadata) ([]inventory.Terminating, error) {
	var out []inventory.Terminating
	for _, id := range ids {
		obj := found[id]
		t := inventory.Terminating{ID: id, UID: obj.GetUID(), Nameless: obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == gitopsv1alpha1.HoldsInName}
		if t.Ahead = obj.GetDeletionTimestamp() == nil; !t.Ahead {
			var err error
			if t.Keeps, err = d.keeps(ctx, id, obj); err != nil {
				return nil, err
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// appliers returns the Kustomizations that applied the objects, each once, without the one in but.
func appliers(but client.ObjectKey, ids []inventory.ID, by map[inventory.ID]client.ObjectKey) []inventory.ID {
	var out []inventory.ID
	for _, id := range ids {
		of := inventory.ID{Namespace: by[id].Namespace, Name: by[id].Name, GroupKind: kustomizations}
		if by[id] != but && !slices.Contains(out, of) {
			out = append(out, of)
		}
	}
	return out
}

// read reads objects of a kind, one by one, or, where that takes fewer requests, lists all of the kind that the
// Kustomizations applied.
func (d deleting) read(ctx context.Context, kind schema.GroupKind, ids []inventory.ID, owners []client.ObjectKey) ([]*metav1.PartialObjectMetadata, error) {
	mapping, err := d.mapper.RESTMapping(kind)
	if apimeta.IsNoMatchError(err) {
		return nil, nil // the kind is not served any more, and all its objects are gone
	}
	if err != nil {
		return nil, fmt.Errorf("look up the kind %s: %w", kind, err)
	}
	if len(ids) > mostReads {
		return d.list(ctx, mapping.GroupVersionKind, owners)
	}
	var out []*metav1.PartialObjectMetadata
	for _, id := range ids {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(mapping.GroupVersionKind)
		err := d.live.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, obj)
		switch {
		case err == nil:
			out = append(out, obj)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("look whether %s is gone: %w", inventory.Describe(id), err)
		}
	}
	return out, nil
}

func (d deleting) list(ctx context.Context, gvk schema.GroupVersionKind, owners []client.ObjectKey) ([]*metav1.PartialObjectMetadata, error) {
	var names []string
	for _, o := range owners {
		names = append(names, o.Name)
	}
	label := kustomizev1.GroupVersion.Group + "/name"
	of, err := labels.NewRequirement(label, selection.In, names)
	if err != nil {
		return nil, fmt.Errorf("look for objects of %v: %w", names, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	err = d.live.List(ctx, list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*of)})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look which %s are gone: %w", gvk.Kind, err)
	}
	out := make([]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// keeps returns a text about what keeps an object from being gone; empty for nothing. A Kustomization's own finalizer
// does not count, as the loop removes it once it has deleted what the Kustomization applied.
func (d deleting) keeps(ctx context.Context, id inventory.ID, obj *metav1.PartialObjectMetadata) (string, error) {
	finalizers := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return id.GroupKind == kustomizations && f == kustomizev1.KustomizationFinalizer
	})
	if known := cascade.BlockedBy(finalizers); known != "" || id.GroupKind != namespaces {
		return known, nil
	}
	namespace := &corev1.Namespace{}
	if err := d.live.Get(ctx, client.ObjectKey{Name: id.Name}, namespace); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return cascade.Remaining(namespace), nil
}
