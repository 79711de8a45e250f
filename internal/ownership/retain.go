package ownership

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// ErrOtherObject says that a rule returned another object than it was asked
// about.
var ErrOtherObject = errors.New("the rule returned an object of another kind or name")

// Retained turns what a rule retained into what is applied, so that nothing of
// the member's becomes ours and nothing of ours is reset by mistake. A field
// that the rule took over from live, and that is not ours, is left out again:
// whoever set it keeps it. A field of ours that the rule left out keeps live's
// value: one that its only owner no longer applies would be reset. The marks by
// which an object is known to be managed stay.
func Retained(desired, retained, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if retained == nil || retained.GroupVersionKind() != desired.GroupVersionKind() ||
		retained.GetName() != desired.GetName() || retained.GetNamespace() != desired.GetNamespace() {
		return nil, ErrOtherObject
	}
	out := retained.DeepCopy()
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	if _, wanted := desired.Object["status"]; !wanted {
		delete(out.Object, "status")
	}
	t := ownership{in: &reader{}, ours: ownedFields(live), all: &fieldTree{}}
	for _, entry := range entriesOf(live) {
		if fields, ok := entry["fieldsV1"].(map[string]any); ok {
			t.all.add(fields)
		}
	}
	if err := t.object(desired.Object, out.Object, live.Object); err != nil {
		return nil, fmt.Errorf("tell what is the member's: %w", err)
	}
	out.SetGroupVersionKind(desired.GroupVersionKind())
	out.SetNamespace(desired.GetNamespace())
	out.SetName(desired.GetName())
	copyMetadata(out, desired)
	return out, nil
}

// copyMetadata puts the labels and annotations of a managed object back.
func copyMetadata(out, desired *unstructured.Unstructured) {
	labels, annotations := out.GetLabels(), out.GetAnnotations()
	keep := func(in *map[string]string, from map[string]string, key string) {
		value, ok := from[key]
		if !ok || (*in)[key] == value {
			return
		}
		if *in == nil {
			*in = map[string]string{}
		}
		(*in)[key] = value
	}
	keep(&labels, desired.GetLabels(), workv1alpha2.ManagedByKarmadaLabel)
	keep(&annotations, desired.GetAnnotations(), workv1alpha2.WorkNamespaceAnnotation)
	keep(&annotations, desired.GetAnnotations(), workv1alpha2.WorkNameAnnotation)
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
}

// object goes through the fields of want and got, and changes got.
func (t ownership) object(want, got, have map[string]any) error {
	for key := range want {
		if _, kept := got[key]; !kept {
			if value, there := have[key]; there && t.ours["f:"+key] != nil {
				got[key] = runtime.DeepCopyJSONValue(value)
			}
		}
	}
	for key, value := range got {
		wanted, isWanted := want[key]
		present, there := have[key]
		if !there || isWanted && t.in.same(wanted, value) {
			continue
		}
		below, ours := t.below("f:" + key)
		result, keep, err := below.value(wanted, value, present, isWanted, ours)
		if err != nil {
			return err
		}
		if keep {
			got[key] = result
		} else {
			delete(got, key)
		}
	}
	if t.in.exhausted() {
		return errIntricate
	}
	return nil
}

// value decides one value that differs from what is wanted, and reports whether it
// is applied.
func (t ownership) value(want, got, have any, wanted, ours bool) (any, bool, error) {
	if below, ok := objects(got, have); ok && !t.all.whole() {
		of, _ := want.(map[string]any)
		err := t.object(of, below[0], below[1])
		return got, wanted || len(below[0]) > 0, err
	}
	items, isList := got.([]any)
	there, wasList := have.([]any)
	if isList && wasList && len(t.all.names()) > 0 {
		of, _ := want.([]any)
		left, err := t.list(of, items, there)
		return left, wanted || len(left) > 0, err
	}
	return got, ours || !t.in.same(got, have), nil
}

// list decides the items of a list that has names for them.
func (t ownership) list(want, got, have []any) ([]any, error) {
	keys := keyOf(t.all.names()[0])
	all, err := t.restored(keys, want, got, have)
	if err != nil {
		return nil, err
	}
	out := make([]any, 0, len(all))
	for _, item := range all {
		present, there, err := t.in.counterpart(keys, item, have)
		if err != nil {
			return nil, err
		}
		wanted, isWanted, err := t.in.counterpart(keys, item, want)
		if err != nil {
			return nil, err
		}
		if !there || isWanted && t.in.same(wanted, item) {
			out = append(out, item)
			continue
		}
		below, ours := t.below(t.all.nameOf(item))
		if !isWanted && !ours && t.in.same(item, present) {
			continue
		}
		if deep, ok := objects(item, present); ok {
			of, _ := wanted.(map[string]any)
			if err := below.item(keys, of, deep[0], deep[1]); err != nil {
				return nil, err
			}
		}
		out = append(out, item)
	}
	return out, nil
}

// restored returns the items of got, and those of ours that got leaves out.
func (t ownership) restored(keys map[string]any, want, got, have []any) ([]any, error) {
	all := slices.Clone(got)
	in := &reader{} // got changes later on
	for _, item := range want {
		if _, ours := t.ours[t.all.nameOf(item)]; !ours {
			continue
		}
		present, there, err := t.in.counterpart(keys, item, have)
		if err != nil {
			return nil, err
		}
		_, kept, err := in.counterpart(keys, item, got)
		if err != nil {
			return nil, err
		}
		if there && !kept {
			all = append(all, runtime.DeepCopyJSONValue(present))
		}
	}
	return all, nil
}

// item decides one item of a list. What names it stays.
func (t ownership) item(keys, want, got, have map[string]any) error {
	kept := map[string]any{}
	for field := range keys {
		if value, ok := got[field]; ok {
			kept[field] = value
		}
	}
	err := t.object(want, got, have)
	maps.Copy(got, kept)
	return err
}

// objects returns the values as objects, if all of them are.
func objects(values ...any) ([]map[string]any, bool) {
	out := make([]map[string]any, len(values))
	for i, value := range values {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		out[i] = object
	}
	return out, true
}
