package applier

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Observed are the objects on the hub that carry an owner's labels.
type Observed map[inventory.ID]*unstructured.Unstructured

// AnyDeleting reports whether one of the entries is being deleted.
func (o Observed) AnyDeleting(entries []inventory.Entry) bool {
	return slices.ContainsFunc(entries, func(e inventory.Entry) bool { return o[e.ID] != nil && o[e.ID].GetDeletionTimestamp() != nil })
}

// reader reads the hub, past all caches, and how it serves kinds.
type reader struct {
	hub    client.Reader
	mapper meta.RESTMapper
}

// observe lists what the hub has of the kinds of entries with the owner's labels, as many kinds at
// a time as parallel says.
func (r reader) observe(ctx context.Context, owner types.NamespacedName, entries []inventory.Entry, parallel int) (Observed, error) {
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	kinds, err := r.servedKinds(entries)
	if err != nil {
		return nil, err
	}
	lists := make([][]unstructured.Unstructured, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, kind := range kinds {
		group.Go(func() error {
			var err error
			lists[i], err = r.list(ctx, owner, kind)
			if apierrors.IsForbidden(err) {
				lists[i], err = r.single(ctx, owner, kind, entries)
			}
			if err != nil {
				return fmt.Errorf("list %s of %s: %w", kind.Kind, owner, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	seen := Observed{}
	for i := range lists {
		for j := range lists[i] {
			obj := &lists[i][j]
			seen[inventory.IDOf(obj)] = obj
		}
	}
	return seen, nil
}

// list returns what the hub has of a kind with the owner's labels. The mapper caches how kinds are
// served, so only a list that is answered with NotFound shows that a kind, or a version of it,
// is not served any more. The mapper is then reset and the kind looked up again.
func (r reader) list(ctx context.Context, owner types.NamespacedName, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind)
	err := r.hub.List(ctx, &list, client.MatchingLabels(inventory.OwnerLabels(owner)))
	if !apierrors.IsNotFound(err) {
		return list.Items, err
	}
	meta.MaybeResetRESTMapper(r.mapper)
	mapping, lookup := r.mapping(kind)
	switch {
	case meta.IsNoMatchError(lookup):
		return nil, nil
	case lookup != nil:
		return nil, lookup
	case mapping.GroupVersionKind == kind:
		return nil, err // discovery has it and the endpoint does not: it is about to go, or to come
	}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.hub.List(ctx, &list, client.MatchingLabels(inventory.OwnerLabels(owner)))
	return list.Items, err
}

// single returns what list would, of the given entries alone, for a reader that may not list all objects of a kind.
func (r reader) single(ctx context.Context, owner types.NamespacedName, kind schema.GroupVersionKind, entries []inventory.Entry) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, e := range entries {
		if e.ID.GroupKind != kind.GroupKind() {
			continue
		}
		asked := &unstructured.Unstructured{}
		asked.SetGroupVersionKind(kind)
		asked.SetNamespace(e.ID.Namespace)
		asked.SetName(e.ID.Name)
		found, err := r.get(ctx, asked)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		if by, _ := inventory.OwnerOf(found); by == owner {
			out = append(out, *found)
		}
	}
	return out, nil
}

// servedKinds returns the kinds of entries in versions that the hub serves.
func (r reader) servedKinds(entries []inventory.Entry) ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	asked := map[schema.GroupKind]bool{}
	for _, e := range entries {
		if asked[e.ID.GroupKind] {
			continue
		}
		asked[e.ID.GroupKind] = true
		mapping, err := r.mapping(e.GroupVersionKind())
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up the kind %s: %w", e.ID.GroupKind, err)
		}
		kinds = append(kinds, mapping.GroupVersionKind)
	}
	return kinds, nil
}

// mapping finds how a kind is served: in the version asked for, else in any.
func (r reader) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil || !meta.IsNoMatchError(err) {
		return mapping, err
	}
	return r.mapper.RESTMapping(gvk.GroupKind())
}

// get reads one object of the hub; nil if there is none.
func (r reader) get(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(desired.GroupVersionKind())
	err := r.hub.Get(ctx, client.ObjectKeyFromObject(desired), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", inventory.Describe(inventory.IDOf(desired)), err)
	}
	return found, nil
}
