package ownership

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// FieldManager is the name under which Flotilla applies objects to members.
const FieldManager = rules.Manager

// shorten keeps 120 bits of a hash: two values do not collide by chance.
func shorten(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:15]) }

// Hash returns a hash over exactly those values of obj that FieldManager
// has applied and still owns. It is empty when it owns none. Changes by others
// to fields of their own leave it as it is; a change to, or the loss of, a field
// of ours does not.
func Hash(obj *unstructured.Unstructured) (string, error) {
	fields := ownedFields(obj)
	if len(fields) == 0 {
		return "", nil
	}
	sum := sha256.New()
	p := projection{out: sum, in: &reader{}}
	p.walk(fields, obj.Object)
	if p.err != nil {
		return "", fmt.Errorf("hash the applied fields of %s %s: %w", obj.GetKind(), obj.GetName(), p.err)
	}
	return shorten(sum.Sum(nil)), nil
}

// ownedFields returns the field set of our server-side apply, as it stands in
// metadata.managedFields.
func ownedFields(obj *unstructured.Unstructured) map[string]any {
	for _, entry := range entriesOf(obj) {
		if isOurs(entry) {
			return fieldsOf(entry)
		}
	}
	return nil
}

// Applies reports whether anything of a member's object was applied from here and
// is still ours.
func Applies(obj *unstructured.Unstructured) bool { return len(ownedFields(obj)) > 0 }

// entriesOf returns the entries of metadata.managedFields.
func entriesOf(obj *unstructured.Unstructured) []map[string]any {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	out := make([]map[string]any, 0, len(entries))
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok {
			out = append(out, entry)
		}
	}
	return out
}

// fieldsOf returns the field set of an entry of managedFields; nil where it has none.
func fieldsOf(entry map[string]any) map[string]any {
	fields, _ := entry["fieldsV1"].(map[string]any)
	return fields
}

// isOurs reports whether an entry of managedFields is that of our server-side apply.
func isOurs(entry map[string]any) bool {
	return entry["manager"] == FieldManager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && entry["subresource"] == nil
}

// projection writes the values that a field set names, in a fixed order. The
// field set's keys are those of metadata.managedFields: "f:" and a field's name,
// "k:" and the key fields of a list's item, "v:" and a member of a set, "i:" and
// an index, "." for the parent itself.
type projection struct {
	out hash.Hash
	in  *reader
	err error
}

func (p *projection) walk(fields map[string]any, value any) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		p.write(key)
		if key == "." {
			continue
		}
		child, found, err := p.in.step(key, value)
		if err != nil {
			p.err = err
		}
		if p.err != nil {
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
	if p.in.spent += 4 * len(data); p.in.exhausted() { // it takes as long as to compare so much
		p.err = errIntricate
	}
	_, _ = p.out.Write(data)
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
