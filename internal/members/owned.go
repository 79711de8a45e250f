package members

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FieldManager is the name under which Flotilla applies objects to members.
const FieldManager = "flotilla"

// Hash returns a short hash over bytes.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return shorten(sum[:])
}

// 120 bits are far beyond what chance reaches.
func shorten(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:15]) }

// OwnedHash returns a hash over exactly those values of obj that FieldManager
// has applied and still owns. It is empty when it owns none. Changes by others
// to fields of their own leave it as it is; a change to, or the loss of, a field
// of ours does not.
func OwnedHash(obj *unstructured.Unstructured) (string, error) {
	fields := ownedFields(obj)
	if len(fields) == 0 {
		return "", nil
	}
	sum := sha256.New()
	p := projection{out: sum}
	p.walk(fields, obj.Object)
	if p.err != nil {
		return "", fmt.Errorf("hash the applied fields of %s %s: %w", obj.GetKind(), obj.GetName(), p.err)
	}
	return shorten(sum.Sum(nil)), nil
}

// ownedFields returns the field set of our server-side apply, as it stands in
// metadata.managedFields.
func ownedFields(obj *unstructured.Unstructured) map[string]any {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if entry["manager"] == FieldManager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && entry["subresource"] == nil {
			fields, _ := entry["fieldsV1"].(map[string]any)
			return fields
		}
	}
	return nil
}

// projection writes the values that a field set names, in a fixed order. The
// field set's keys are those of metadata.managedFields: "f:" and a field's name,
// "k:" and the key fields of a list's item, "v:" and a member of a set, "i:" and
// an index, "." for the parent itself.
type projection struct {
	out hash.Hash
	err error
}

func (p *projection) walk(fields map[string]any, value any) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		p.write(key)
		if key == "." {
			continue
		}
		child, found, err := step(key, value)
		if err != nil {
			p.err = err
			return
		}
		if !found {
			p.write("-")
			continue
		}
		sub, _ := fields[key].(map[string]any)
		if len(sub) == 0 {
			p.leaf(child)
			continue
		}
		p.walk(sub, child)
	}
	p.write(";")
}

func (p *projection) write(s string) {
	_, _ = io.WriteString(p.out, s)
	_, _ = p.out.Write([]byte{0})
}

func (p *projection) leaf(value any) {
	data, err := json.Marshal(value)
	if err != nil {
		p.err = err
		return
	}
	_, _ = p.out.Write(data)
}

// step goes from a value to the part of it that one path element names.
func step(element string, value any) (child any, found bool, err error) {
	kind, rest, ok := strings.Cut(element, ":")
	if !ok {
		return nil, false, fmt.Errorf("path element %q", element)
	}
	switch kind {
	case "f":
		object, _ := value.(map[string]any)
		child, found = object[rest]
		return child, found, nil
	case "i":
		index, err := strconv.Atoi(rest)
		items, _ := value.([]any)
		if err != nil || index < 0 || index >= len(items) {
			return nil, false, err
		}
		return items[index], true, nil
	case "k", "v":
		return find(rest, value)
	default:
		return nil, false, fmt.Errorf("path element %q", element)
	}
}

// find returns the item of a list that has the given key fields, or that is the
// given value.
func find(wanted string, value any) (any, bool, error) {
	var want any
	if err := utiljson.Unmarshal([]byte(wanted), &want); err != nil {
		return nil, false, fmt.Errorf("path element %q: %w", wanted, err)
	}
	items, _ := value.([]any)
	for _, item := range items {
		if matches(want, item) {
			return item, true, nil
		}
	}
	return nil, false, nil
}

func matches(want, item any) bool {
	keys, isKey := want.(map[string]any)
	if !isKey {
		return scalar(want) && scalar(item) && want == item
	}
	object, isObject := item.(map[string]any)
	if !isObject {
		return false
	}
	for name, value := range keys {
		if !scalar(value) || !scalar(object[name]) || object[name] != value {
			return false
		}
	}
	return true
}

func scalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	default:
		return true
	}
}

// KeepOwned returns retained with those fields back, at the member's value, that
// it lacks of desired although they are ours in the live object: a field that its
// only owner no longer applies would be reset.
func KeepOwned(desired, retained, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := retained.DeepCopy()
	keepOwned(desired.Object, out.Object, live.Object, ownedFields(live))
	return out
}

func keepOwned(desired, retained, live, owned map[string]any) {
	for key, want := range desired {
		fields, ours := owned["f:"+key].(map[string]any)
		value, there := live[key]
		if !ours || !there {
			continue
		}
		got, kept := retained[key]
		if !kept {
			retained[key] = runtime.DeepCopyJSONValue(value)
			continue
		}
		if below, ok := objects(want, got, value); ok {
			keepOwned(below[0], below[1], below[2], fields)
		}
	}
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
