package ownership

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Limits of what is reported about a difference.
const (
	mostFields  = 10
	mostManager = 64
	mostText    = 1024
)

// Change is what one of a member's field managers did to fields that were
// applied from here.
type Change struct {
	// Manager is the field manager; empty where nobody is known.
	Manager string
	// At is when it last wrote, as the member says; it may be empty.
	At string
	// Fields that have another value now, sorted.
	Fields []string
	// Removed are fields that are gone, sorted.
	Removed []string
}

// Changes returns who changed which fields of desired in the member's object,
// sorted by manager. Fields that are ours, and those that somebody else took
// over as they were, are no change. The values are left out: they may be secret.
func Changes(desired, live *unstructured.Unstructured) []Change {
	c := changes{by: map[string]*Change{}, in: &reader{}}
	ours := ownedFields(live)
	for _, entry := range entriesOf(live) {
		fields, ok := entry["fieldsV1"].(map[string]any)
		if !ok || isOurs(entry) {
			continue
		}
		c.entry = entry
		c.taken("", fields, ours, desired.Object, live.Object)
	}
	c.entry = lastUpdate(live)
	c.gone("", desired.Object, live.Object)
	out := make([]Change, 0, len(c.by))
	for _, manager := range slices.Sorted(maps.Keys(c.by)) {
		change := *c.by[manager]
		slices.Sort(change.Fields)
		slices.Sort(change.Removed)
		change.Fields, change.Removed = slices.Compact(change.Fields), slices.Compact(change.Removed)
		out = append(out, change)
	}
	return out
}

// Describe says in words what was changed, in at most 1 KiB.
func Describe(found []Change) string {
	var parts []string
	for _, c := range found {
		by := "somebody"
		if c.Manager != "" {
			by = c.Manager
		}
		if c.At != "" {
			by += " at " + c.At
		}
		if len(c.Fields) > 0 {
			parts = append(parts, enumerate(c.Fields)+" changed by "+by)
		}
		if len(c.Removed) > 0 {
			parts = append(parts, enumerate(c.Removed)+" removed by "+by)
		}
	}
	return excerpt.Bytes(strings.Join(parts, "; "), mostText)
}

func enumerate(fields []string) string { return excerpt.Names(fields, mostFields) }

// changes collects them.
type changes struct {
	entry map[string]any // whose fields are looked at
	by    map[string]*Change
	in    *reader
}

func (c *changes) of() *Change {
	manager, _ := c.entry["manager"].(string)
	manager = excerpt.Bytes(manager, mostManager)
	if c.by[manager] == nil {
		at, _ := c.entry["time"].(string)
		c.by[manager] = &Change{Manager: manager, At: excerpt.Bytes(at, mostManager)}
	}
	return c.by[manager]
}

// taken goes through the fields of somebody else, and finds those which desired
// names, which are not ours and which have another value.
func (c *changes) taken(path string, fields, ours map[string]any, desired, live any) {
	for element, sub := range fields {
		if element == "." {
			continue
		}
		if c.in.exhausted() {
			return
		}
		want, wanted, err := c.in.step(element, desired)
		if err != nil || !wanted {
			c.moved(path, element, desired, live)
			continue
		}
		below, _ := sub.(map[string]any)
		mine, isOurs := ours[element].(map[string]any)
		have, there, _ := c.in.step(element, live)
		at := c.at(path, element, desired)
		switch {
		case len(below) > 0 && isOurs && len(mine) == 0: // ours as a whole
		case len(below) > 0:
			c.taken(at, below, mine, want, have)
		case !isOurs && there && !c.alike(want, have):
			change := c.of()
			change.Fields = append(change.Fields, strings.TrimPrefix(at, "."))
		}
	}
}

// moved finds the key fields by which an item of somebody else, which desired does not name, stands where one of
// desired was, and no longer is: they have the same name, or both have none and there is no other.
func (c *changes) moved(path, element string, desired, live any) {
	keys := keyOf(element)
	wanted, _ := desired.([]any)
	there, _ := live.([]any)
	have, found, err := c.in.step(element, live)
	object, is := have.(map[string]any)
	if len(keys) == 0 || len(wanted) == 0 || !found || !is || err != nil {
		return
	}
	want := wanted[0]
	if object["name"] != nil || len(wanted) > 1 {
		if want, found, err = c.in.counterpart(map[string]any{"name": nil}, have, wanted); !found || err != nil {
			return
		}
	}
	was, is := want.(map[string]any)
	if _, stays, err := c.in.counterpart(keys, want, there); !is || stays || err != nil || was["name"] != object["name"] {
		return
	}
	at := longer(path, c.describe(element, live))
	for key := range keys {
		if value, given := was[key]; given && !c.alike(value, object[key]) {
			change := c.of()
			change.Fields = append(change.Fields, strings.TrimPrefix(longer(at, c.describe("f:"+key, want)), "."))
		}
	}
}

// gone finds fields of desired that live does not have.
func (c *changes) gone(path string, desired, live any) {
	switch want := desired.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return
		}
		for key, value := range want {
			at := c.at(path, "f:"+key, desired)
			if present, there := have[key]; there {
				c.gone(at, value, present)
			} else if !nothing(value) {
				change := c.of()
				change.Removed = append(change.Removed, strings.TrimPrefix(at, "."))
			}
		}
	case []any:
		have, ok := live.([]any)
		if !ok {
			return
		}
		key := map[string]any{"name": nil}
		for _, item := range want {
			object, _ := item.(map[string]any)
			name, _ := object["name"].(string)
			if name == "" {
				continue
			}
			at := longer(path, "["+name+"]")
			if present, there, _ := c.in.counterpart(key, item, have); there {
				c.gone(at, item, present)
			} else {
				change := c.of()
				change.Removed = append(change.Removed, strings.TrimPrefix(at, "."))
			}
		}
	}
}

// nothing reports whether servers may leave a value out.
func nothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(e any) bool { return !nothing(e) })
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	default:
		n, is := number(v)
		return is && n == 0
	}
}

// alike reports whether two values are the same, quantities as the numbers that
// they are.
func (c *changes) alike(a, b any) bool {
	if c.in.same(a, b) {
		return true
	}
	if !scalar(a) || !scalar(b) {
		return false
	}
	// A member may say "1e-2147483647", which takes hours to read.
	x, errX := rules.Quantity(fmt.Sprint(a))
	y, errY := rules.Quantity(fmt.Sprint(b))
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// at returns path with one element more.
func (c *changes) at(path, element string, in any) string {
	return longer(path, c.describe(element, in))
}

// longer adds to a path what is still shown of it.
func longer(path, more string) string {
	if len(path) > mostText {
		return path
	}
	return path + more
}

// describe says in words what a path element names: .replicas, [web],
// [app.kubernetes.io/name].
func (c *changes) describe(element string, in any) string {
	kind, rest, _ := strings.Cut(element, ":")
	switch kind {
	case "f":
		if strings.ContainsAny(rest, "./") {
			return "[" + excerpt.Bytes(rest, mostManager) + "]"
		}
		return "." + excerpt.Bytes(rest, mostManager)
	case "k":
		if item, found, _ := c.in.step(element, in); found {
			if object, ok := item.(map[string]any); ok {
				if name, ok := object["name"].(string); ok && name != "" {
					return "[" + excerpt.Bytes(name, mostManager) + "]"
				}
			}
		}
	}
	return "[" + excerpt.Bytes(rest, mostManager) + "]"
}

// lastUpdate returns the entry of who last wrote the object by other means than
// applying it from here.
func lastUpdate(live *unstructured.Unstructured) map[string]any {
	others := slices.DeleteFunc(entriesOf(live), func(entry map[string]any) bool {
		return isOurs(entry) || entry["subresource"] != nil || entry["operation"] != string(metav1.ManagedFieldsOperationUpdate)
	})
	if len(others) == 0 {
		return nil
	}
	return slices.MaxFunc(others, func(a, b map[string]any) int {
		x, _ := a["time"].(string)
		y, _ := b["time"].(string)
		return cmp.Compare(x, y)
	})
}
