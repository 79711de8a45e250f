package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID names an object across versions of its kind: namespace, name, group and
// kind. Its string form is the one that Flux writes into inventories.
type ID = object.ObjMetadata

// Entry is one object of an inventory.
type Entry struct {
	ID ID
	// Version is the version of the kind that the object was applied in.
	Version string
}

// GroupVersionKind returns the kind that the entry was applied in.
func (e Entry) GroupVersionKind() schema.GroupVersionKind {
	return e.ID.GroupKind.WithVersion(e.Version)
}

// Describe returns the name of an object for people: "Kind/namespace/name", or
// "Kind/name" for a cluster-scoped object.
func Describe(id ID) string {
	if id.Namespace == "" {
		return id.GroupKind.Kind + "/" + id.Name
	}
	return id.GroupKind.Kind + "/" + id.Namespace + "/" + id.Name
}

// IDOf returns the identity of obj.
func IDOf(obj *unstructured.Unstructured) ID {
	return object.UnstructuredToObjMetadata(obj)
}

// OfManifest returns the identity and the metadata of a manifest in a Work. It returns false if raw is not an
// object.
func OfManifest(raw []byte) (ID, *metav1.PartialObjectMetadata, bool) {
	obj := &metav1.PartialObjectMetadata{}
	if json.Unmarshal(raw, obj) != nil {
		return ID{}, nil, false
	}
	return ID{Namespace: obj.Namespace, Name: obj.Name, GroupKind: obj.GroupVersionKind().GroupKind()}, obj, true
}

// Of returns the inventory of a set of objects.
//
// It returns a *DuplicateError if two objects have the same identity.
func Of(objects []*unstructured.Unstructured) ([]Entry, error) {
	entries := make([]Entry, 0, len(objects))
	for _, obj := range objects {
		entries = append(entries, Entry{ID: IDOf(obj), Version: obj.GroupVersionKind().Version})
	}
	sortEntries(entries)
	for i := 1; i < len(entries); i++ {
		if entries[i].ID == entries[i-1].ID {
			return nil, &DuplicateError{ID: entries[i].ID}
		}
	}
	return entries, nil
}

// DuplicateError says that a revision holds the same object twice.
type DuplicateError struct{ ID ID }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%s stands twice in this revision: remove one of them", Describe(e.ID))
}

// Read returns the entries of a recorded inventory; nil has none. An entry
// that cannot be read is an error: what is owned must not be guessed.
func Read(recorded *kustomizev1.ResourceInventory) ([]Entry, error) {
	if recorded == nil {
		return nil, nil
	}
	entries := make([]Entry, 0, len(recorded.Entries))
	for _, ref := range recorded.Entries {
		id, err := object.ParseObjMetadata(ref.ID)
		if err != nil {
			return nil, fmt.Errorf("inventory entry %q: %w", ref.ID, err)
		}
		entries = append(entries, Entry{ID: id, Version: ref.Version})
	}
	sortEntries(entries)
	return entries, nil
}

// Record returns entries in the form of a status.
func Record(entries []Entry) *kustomizev1.ResourceInventory {
	refs := make([]kustomizev1.ResourceRef, 0, len(entries))
	for _, e := range entries {
		refs = append(refs, kustomizev1.ResourceRef{ID: e.ID.String(), Version: e.Version})
	}
	return &kustomizev1.ResourceInventory{Entries: refs}
}

// Drop removes objects from the inventory of a status, and from what it records as leaving.
func Drop(status *kustomizev1.KustomizationStatus, ids []ID) {
	dropped := func(id ID) bool { return slices.Contains(ids, id) }
	RecordLeaving(status, slices.DeleteFunc(Leaving(*status), dropped), slices.DeleteFunc(Undecided(*status), dropped), true)
	if status.Inventory == nil {
		return
	}
	gone := map[string]bool{}
	for _, id := range ids {
		gone[id.String()] = true
	}
	status.Inventory.Entries = slices.DeleteFunc(slices.Clone(status.Inventory.Entries), func(ref kustomizev1.ResourceRef) bool { return gone[ref.ID] })
}

// Diff compares the objects of a revision with what is owned. Each
// list is sorted.
type Diff struct {
	// Added are in the revision, but were not owned.
	Added []Entry
	// Kept are in both, in the version of the revision.
	Kept []Entry
	// Removed were owned, but are no longer in the revision.
	Removed []Entry
}

// Compare returns the difference between what is owned and what a revision
// holds. A new version of the same kind is the same object.
func Compare(owned, desired []Entry) Diff {
	have := make(map[ID]bool, len(owned))
	for _, e := range owned {
		have[e.ID] = true
	}
	want := make(map[ID]bool, len(desired))
	var diff Diff
	for _, e := range desired {
		want[e.ID] = true
		if have[e.ID] {
			diff.Kept = append(diff.Kept, e)
			continue
		}
		diff.Added = append(diff.Added, e)
	}
	for _, e := range owned {
		if !want[e.ID] {
			diff.Removed = append(diff.Removed, e)
		}
	}
	sortEntries(diff.Added)
	sortEntries(diff.Kept)
	sortEntries(diff.Removed)
	return diff
}

// IDsOf returns the identities of entries, in their order.
func IDsOf(entries []Entry) []ID {
	ids := make([]ID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}

// Union returns the entries of both, each identity once; for one that is
// in both, the version of b counts.
func Union(a, b []Entry) []Entry {
	out := slices.Concat(b, Compare(a, b).Removed)
	sortEntries(out)
	return out
}

// SortIDs sorts identities in the order of entries.
func SortIDs(ids []ID) { slices.SortFunc(ids, compareIDs) }

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return compareIDs(a.ID, b.ID) })
}

func compareIDs(a, b ID) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.GroupKind.Group, b.GroupKind.Group),
		cmp.Compare(a.GroupKind.Kind, b.GroupKind.Kind),
		cmp.Compare(a.Name, b.Name),
	)
}
