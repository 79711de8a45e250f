package ownership

import (
	"maps"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ownership is who owns what below one place of a member's object.
type ownership struct {
	in *reader
	// ours is our field set, as in metadata.managedFields.
	ours map[string]any
	all  *fieldTree // of everybody, us included
}

// below returns the ownership one path element further down, and whether we own
// something there.
func (t ownership) below(element string) (ownership, bool) {
	fields, ours := t.ours[element].(map[string]any)
	return ownership{in: t.in, ours: fields, all: t.all.below(element)}, ours
}

// fieldTree is what field sets say together of one place. The nil one says nothing,
// the zero value is ready.
type fieldTree struct {
	// leaf: one of them ends here.
	leaf  bool
	parts map[string]*fieldTree
	// elements that name items of the list here, sorted; and what finds one of them
	// by an item.
	elements []string
	items    *itemNames
}

// add adds a field set.
func (c *fieldTree) add(fields map[string]any) {
	if len(fields) == 0 {
		c.leaf = true
		return
	}
	if c.parts == nil {
		c.parts = make(map[string]*fieldTree, len(fields))
	}
	for element, sub := range fields {
		part := c.parts[element]
		if part == nil {
			part = &fieldTree{}
			c.parts[element] = part
		}
		if below, ok := sub.(map[string]any); ok {
			part.add(below)
		}
	}
}

func (c *fieldTree) below(element string) *fieldTree {
	if c == nil {
		return nil
	}
	return c.parts[element]
}

// whole reports whether the value here can only be owned as a whole.
func (c *fieldTree) whole() bool { return c != nil && c.leaf }

// names returns the path elements that name items of the list here.
func (c *fieldTree) names() []string {
	if c == nil {
		return nil
	}
	if c.elements == nil {
		c.elements = slices.DeleteFunc(slices.Sorted(maps.Keys(c.parts)), func(element string) bool {
			return !strings.HasPrefix(element, "k:") && !strings.HasPrefix(element, "v:")
		})
	}
	return c.elements
}

// nameOf returns the path element that names an item of the list here, by the
// key fields that others have: the first one, and empty where none does.
func (c *fieldTree) nameOf(item any) string {
	if c == nil {
		return ""
	}
	if c.items == nil {
		c.items = newItemNames(c.names())
	}
	return c.items.of(item)
}

// itemNames finds the path element that names an item. The sets of key fields
// beyond mostSorts, and those of more than mostKeys, find none.
type itemNames struct {
	sorts  [][]string
	keyed  []map[string]string // for each of sorts, by the values of its fields
	scalar map[string]string   // by the value
}

func newItemNames(elements []string) *itemNames {
	out := &itemNames{scalar: map[string]string{}}
	at := map[string]int{}
	for _, element := range elements {
		var want any
		if utiljson.Unmarshal([]byte(element[len("k:"):]), &want) != nil {
			continue
		}
		keys, isKey := want.(map[string]any)
		if !isKey {
			if scalar(want) {
				first(out.scalar, string(appendValue(nil, want)), element)
			}
			continue
		}
		fields := slices.Sorted(maps.Keys(keys))
		key, scalars := exactKey(fields, keys)
		if !scalars || len(fields) > mostKeys {
			continue
		}
		sort := encoded(fields)
		if _, known := at[sort]; !known {
			if len(out.sorts) == mostSorts {
				continue
			}
			at[sort] = len(out.sorts)
			out.sorts, out.keyed = append(out.sorts, fields), append(out.keyed, map[string]string{})
		}
		first(out.keyed[at[sort]], key, element)
	}
	return out
}

// first sets what is not set yet.
func first(in map[string]string, key, value string) {
	if _, known := in[key]; !known {
		in[key] = value
	}
}

// of returns the first path element that names item; empty for none.
func (n *itemNames) of(item any) string {
	object, is := item.(map[string]any)
	if !is {
		if !scalar(item) {
			return ""
		}
		return n.scalar[string(appendValue(nil, item))]
	}
	out := ""
	for i, fields := range n.sorts {
		key, scalars := exactKey(fields, object)
		if !scalars {
			continue
		}
		if name, named := n.keyed[i][key]; named && (out == "" || name < out) {
			out = name
		}
	}
	return out
}

// keyOf returns the key fields of a path element that names an item of a list.
func keyOf(element string) map[string]any {
	var out map[string]any
	if rest, ok := strings.CutPrefix(element, "k:"); ok && utiljson.Unmarshal([]byte(rest), &out) != nil {
		return nil
	}
	return out
}
