package ownership_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/internal/ownership"
)

// hostile returns what is desired and a member's object of about 3 MiB, whose
// managedFields are such as take the longest to look at.
type hostile func() (desired, live map[string]any)

const size = 3 << 20

// of returns an object with a spec, of which others and we own fields.
func of(spec any, owned ...any) map[string]any {
	metadata := map[string]any{"name": "web", "namespace": "shop"}
	entries := make([]any, 0, len(owned))
	for i, fields := range owned {
		entry := map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": map[string]any{"f:spec": fields}}
		if i == 0 {
			entry["manager"], entry["operation"] = ownership.FieldManager, "Apply"
		}
		entries = append(entries, entry)
	}
	if len(entries) > 0 {
		metadata["managedFields"] = entries
	}
	return map[string]any{"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": spec}
}

// items returns a list and the field set that names each of its items.
func items(n int, item func(i int) map[string]any, keys ...string) (list []any, fields map[string]any) {
	fields = map[string]any{}
	for i := range n {
		object, key := item(i), map[string]any{}
		list = append(list, object)
		below := map[string]any{".": map[string]any{}}
		for field := range object {
			below["f:"+field] = map[string]any{}
		}
		for _, field := range keys {
			key[field] = object[field]
		}
		data, _ := json.Marshal(key)
		fields["k:"+string(data)] = below
	}
	return list, fields
}

func named(i int) map[string]any { return map[string]any{"name": fmt.Sprint("item-", i), "value": "x"} }

// spaced returns n ways to write the same path element.
func spaced(n int, before, after string) []string {
	out := make([]string, n)
	for i := range out {
		blanks := strings.NewReplacer("0", " ", "1", "\t").Replace(fmt.Sprintf("%017b", i))
		out[i] = before + blanks + after
	}
	return out
}

var hostiles = map[string]hostile{
	"a list of many items": func() (map[string]any, map[string]any) {
		list, fields := items(size/140, named, "name")
		others := maps.Clone(fields)
		return of(map[string]any{"items": list}), of(map[string]any{"items": list}, map[string]any{"f:items": fields}, map[string]any{"f:items": others})
	},
	"many items of others": func() (map[string]any, map[string]any) {
		list, fields := items(size/140, named, "name")
		wanted, _ := items(size/140, func(i int) map[string]any {
			return map[string]any{"name": fmt.Sprint("item-", i*2), "value": "y"}
		}, "name")
		return of(map[string]any{"items": wanted}), of(map[string]any{"items": list}, map[string]any{}, map[string]any{"f:items": fields})
	},
	"key fields that are missing": func() (map[string]any, map[string]any) {
		list, fields := items(size/140, func(i int) map[string]any {
			out := map[string]any{"port": int64(i)}
			if i%2 == 0 {
				out["protocol"] = "TCP"
			}
			return out
		}, "port", "protocol")
		return of(map[string]any{"items": list}), of(map[string]any{"items": list}, map[string]any{"f:items": fields}, map[string]any{"f:items": fields})
	},
	"a set of many values": func() (map[string]any, map[string]any) {
		var list []any
		fields := map[string]any{}
		for i := range size / 60 {
			list = append(list, fmt.Sprint("value-", i))
			fields[fmt.Sprintf(`v:"value-%d"`, i)] = map[string]any{}
		}
		return of(map[string]any{"items": list}), of(map[string]any{"items": list}, map[string]any{"f:items": fields}, map[string]any{"f:items": fields})
	},
	"a set of many numbers": func() (map[string]any, map[string]any) {
		var list []any
		fields := map[string]any{}
		for i := range int64(size / 20) {
			list = append(list, i)
			fields[fmt.Sprint("v:", i)] = map[string]any{}
		}
		return of(map[string]any{"items": list}), of(map[string]any{"items": list}, map[string]any{"f:items": fields}, map[string]any{"f:items": fields})
	},
	"field sets in field sets": func() (map[string]any, map[string]any) {
		spec, fields := any("x"), map[string]any{}
		for range 5000 {
			spec, fields = map[string]any{"a": spec}, map[string]any{"f:a": fields}
		}
		owned := []any{}
		for range size / 5000 / 16 {
			owned = append(owned, fields)
		}
		return of(spec), of(spec, owned...)
	},
	"many who own much": func() (map[string]any, map[string]any) {
		spec, fields, owned := map[string]any{}, map[string]any{}, []any{}
		for i := range size / 100 {
			name := fmt.Sprint("field-", i)
			spec[name], fields["f:"+name] = "x", map[string]any{}
		}
		for i := range size / 400 {
			owned = append(owned, map[string]any{fmt.Sprint("f:field-", i): map[string]any{}})
		}
		return of(spec), of(spec, append(owned, fields)...)
	},
	"another key for each item": func() (map[string]any, map[string]any) {
		var list []any
		fields := map[string]any{}
		for i := range size / 100 {
			key := fmt.Sprint("key-", i)
			list = append(list, map[string]any{key: int64(1), "name": key})
			fields[fmt.Sprintf(`k:{%q:1}`, key)] = map[string]any{".": map[string]any{}}
		}
		return of(map[string]any{"items": list}), of(map[string]any{"items": list}, map[string]any{"f:items": fields}, map[string]any{"f:items": fields})
	},
	"one key of very many fields": func() (map[string]any, map[string]any) {
		key, list := map[string]any{}, []any{}
		for i := range size / 80 {
			key[fmt.Sprint("a", i)] = int64(1)
			list = append(list, map[string]any{"a1": int64(i)})
		}
		data, _ := json.Marshal(key)
		fields := map[string]any{"f:items": map[string]any{"k:" + string(data): map[string]any{}}}
		return of(map[string]any{"items": list}), of(map[string]any{"items": list}, fields, fields)
	},
	"many who own something": func() (map[string]any, map[string]any) {
		spec, owned := map[string]any{}, []any{map[string]any{}}
		for i := range size / 30 {
			spec[fmt.Sprint("field-", i)] = "x"
		}
		for range size / 200 {
			owned = append(owned, map[string]any{"f:field-1": map[string]any{}})
		}
		return of(map[string]any{"field-1": "y"}), of(spec, owned...)
	},
	"many who own all": func() (map[string]any, map[string]any) {
		list, _ := items(size/100, named, "name")
		owned := []any{map[string]any{}}
		for range size / 200 {
			owned = append(owned, map[string]any{"f:items": map[string]any{}})
		}
		other, _ := items(size/100, named, "name")
		other[len(other)-1] = "another"
		return of(map[string]any{"items": list}), of(map[string]any{"items": other}, owned...)
	},
	"many names of one item": func() (map[string]any, map[string]any) {
		big, _ := items(size/100, named, "name")
		fields := map[string]any{}
		for _, element := range spaced(size/100, `k:{"name":`, `"one"}`) {
			fields[element] = map[string]any{"f:big": map[string]any{}}
		}
		spec := map[string]any{"items": []any{map[string]any{"name": "one", "big": big}}}
		other := map[string]any{"items": []any{map[string]any{"name": "one", "big": append(big[1:len(big):len(big)], "another")}}}
		return of(other), of(spec, map[string]any{"f:items": fields}, map[string]any{"f:items": fields})
	},
	"lists in one item of many names": func() (map[string]any, map[string]any) {
		big, _ := items(size/100, named, "name")
		fields := map[string]any{}
		for _, element := range spaced(size/150, `k:{"name":`, `"one"}`) {
			fields[element] = map[string]any{"f:big": map[string]any{`k:{"name":"nobody"}`: map[string]any{}}}
		}
		spec := map[string]any{"items": []any{map[string]any{"name": "one", "big": big}}}
		return of(spec), of(spec, map[string]any{"f:items": fields}, map[string]any{"f:items": fields})
	},
	"objects in objects": func() (map[string]any, map[string]any) {
		list, _ := items(size/100, named, "name")
		deep := func(end any) any {
			out := map[string]any{"list": list, "end": end}
			for range 5000 {
				out = map[string]any{"a": out}
			}
			return out
		}
		return of(deep("y")), of(deep("x"), map[string]any{}, map[string]any{})
	},
}

// lookAt does all that is done with a member's object.
func inspections(tb testing.TB, desired, live *unstructured.Unstructured) map[string]func() {
	retained := desired.DeepCopy()
	unstructured.RemoveNestedField(retained.Object, "metadata", "managedFields")
	theirs, strange := live.DeepCopy(), live.DeepCopy()
	entries, _, _ := unstructured.NestedSlice(strange.Object, "metadata", "managedFields")
	entries[0].(map[string]any)["manager"] = "helm"
	_ = unstructured.SetNestedSlice(strange.Object, entries, "metadata", "managedFields")
	return map[string]func(){
		"hash":   func() { _, _ = ownership.Hash(live) },
		"differ": func() { _ = ownership.Describe(ownership.Changes(desired, live)) },
		"adopt": func() {
			if _, err := ownership.Adopt(desired, strange); err != nil {
				tb.Error(err)
			}
		},
		"displace":              func() { _, _ = ownership.Displace(desired, strange, crowded) },
		"retain what is wanted": func() { _, _ = ownership.Retained(desired, retained, live) },
		"retain what is there":  func() { _, _ = ownership.Retained(desired, theirs, live) },
	}
}

// TestTakesNoMoreTimeThanItsSize looks at objects that took minutes to hours each
// as long as every item of a list was compared with every name: then it does not
// come to its end. The log says how long each takes.
func TestTakesNoMoreTimeThanItsSize(t *testing.T) {
	for name, build := range hostiles {
		t.Run(name, func(t *testing.T) {
			wanted, is := build()
			desired, live := &unstructured.Unstructured{Object: wanted}, &unstructured.Unstructured{Object: is}
			for what, inspect := range inspections(t, desired, live) {
				started := time.Now()
				inspect()
				t.Logf("%s: %s", what, time.Since(started).Round(time.Millisecond))
			}
		})
	}
}
