package ownership

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Displace returns the patch that takes from others what stands in the way of an
// item of desired, so that it is ours alone and goes once desired is applied. It is
// nil where nothing does.
//
// Who changes a key field of an item by hand, such as the port of a Service, makes
// another item of it, that is his; ours is gone. Applied again, ours comes beside it,
// and the server refuses both, as they have the same name. refusal is that answer: of
// the lists that it is about, and of those alone, those items are taken that desired
// does not name and that have the value of one of its items in the field which was
// refused. They are taken from whom Adopt takes from. All else stays theirs.
func Displace(desired, live *unstructured.Unstructured, refusal error) ([]byte, error) {
	var (
		paths   = refusedIn(refusal)
		entries []any
		taken   []*fieldpath.Set
		ours    map[string]any
		in      = &reader{}
	)
	for _, entry := range entriesOf(live) {
		if isOurs(entry) {
			ours = entry
			continue
		}
		fields, readable := takeable(entry, desired)
		if !readable {
			entries = append(entries, entry)
			continue
		}
		var all []*fieldpath.Set
		for _, path := range paths {
			all = append(all, in.rivals(path, fields, desired.Object, live.Object))
		}
		got := union(all)
		left, err := without(entry, fields, got)
		if err != nil {
			return nil, err
		}
		entries = append(entries, left...)
		if !got.Empty() {
			taken = append(taken, got)
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	had, err := setOf(fieldsOf(ours))
	if err != nil {
		return nil, err
	}
	return handOver(desired, live, entries, ours, append(taken, had))
}

// takeable returns the fields of an entry of managedFields if they can be taken, and read.
func takeable(entry map[string]any, desired *unstructured.Unstructured) (*fieldpath.Set, bool) {
	fields, err := setOf(fieldsOf(entry))
	return fields, err == nil && entry["apiVersion"] == desired.GetAPIVersion() && yields(entry)
}

// without returns an entry of managedFields without some of its fields; none if it has no others.
func without(entry map[string]any, fields, gone *fieldpath.Set) ([]any, error) {
	if gone.Empty() {
		return []any{entry}, nil
	}
	left := fields.Difference(gone)
	if left.Empty() {
		return nil, nil
	}
	rest, err := encode(left)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(entry)
	out["fieldsV1"] = rest
	return []any{out}, nil
}

// handOver returns the patch by which our entry of managedFields, of which the rest is given, has the fields of the
// sets; the other entries are as given.
func handOver(desired, live *unstructured.Unstructured, others []any, ours map[string]any, sets []*fieldpath.Set) ([]byte, error) {
	fields, err := encode(union(sets))
	if err != nil {
		return nil, err
	}
	entry := map[string]any{}
	maps.Copy(entry, ours)
	maps.Copy(entry, map[string]any{
		"manager": FieldManager, "operation": string(metav1.ManagedFieldsOperationApply), "apiVersion": desired.GetAPIVersion(),
		"fieldsType": "FieldsV1", "fieldsV1": fields,
	})
	// A version of its own keeps this from undoing what somebody writes meanwhile, and the UID
	// from marking another object of the same name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "managedFields": append(others, entry),
	}})
	if err != nil {
		return nil, fmt.Errorf("encode who owns %s %s: %w", live.GetKind(), live.GetName(), err)
	}
	return patch, nil
}

// anyItem stands for each item of a list in a path.
const anyItem = "*"

// Crowded reports whether a server refused what was applied since items of a list get into each other's way, or may:
// Displace can tell.
func Crowded(refusal error) bool { return len(refusedIn(refusal)) > 0 }

// refusedIn returns the fields of items of lists, each as the names that lead to it, that a server refused as they are
// there twice, or as they are missing: single items may do without a name.
func refusedIn(refusal error) [][]string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(refusal) || !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	var out [][]string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldValueDuplicate && cause.Type != metav1.CauseTypeFieldValueRequired {
			continue
		}
		var path []string
		for part := range strings.SplitSeq(cause.Field, ".") {
			name, index, item := strings.Cut(part, "[")
			if path = append(path, name); item && strings.Trim(index, "0123456789") == "]" {
				path = append(path, anyItem)
			}
		}
		of := len(path) - 2 // the item whose field it is
		if of > 0 && path[of] == anyItem && !slices.ContainsFunc(out, func(known []string) bool { return slices.Equal(known, path) }) {
			out = append(out, path)
		}
	}
	return out
}

// rivals returns what of a field set are the items that are in the way, of the lists that a path leads to.
func (r *reader) rivals(path []string, fields *fieldpath.Set, desired, live any) *fieldpath.Set {
	out := &fieldpath.Set{}
	for element := range fields.Children.All() {
		if !leads(path[0], element) || r.exhausted() {
			continue
		}
		below, _ := fields.Children.Get(element)
		want, wanted := r.reach(element, desired)
		have, there := r.reach(element, live)
		switch theItem := len(path) == 2; {
		case !there || theItem == wanted:
			continue
		case theItem && !r.rival(path[1], have, desired):
			continue
		case theItem && fields.Members.Has(element):
			out.Members.Insert(element)
		case !theItem:
			below = r.rivals(path[1:], below, want, have)
		}
		if !below.Empty() {
			*out.Children.Descend(element) = *below
		}
	}
	return out
}

// leads reports whether a path goes on by an element of a field set.
func leads(name string, by fieldpath.PathElement) bool {
	if name == anyItem {
		return by.Key != nil
	}
	return by.FieldName != nil && *by.FieldName == name
}

// rival reports whether an item has the value of one of a list in a field, which none of them may have.
func (r *reader) rival(field string, item, items any) bool {
	object, is := item.(map[string]any)
	list, _ := items.([]any)
	return is && slices.ContainsFunc(list, func(other any) bool {
		one, is := other.(map[string]any)
		return is && r.same(one[field], object[field])
	})
}
