package words

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// At splits a path as it is written in this package: names between points.
func At(path string) []string { return strings.Split(path, ".") }

// Find returns all that stands at a path. A name with a star matches names of
// an object's fields, and a star all entries of a list, too. Fields come in the
// order of their names.
func Find(node any, path string) []any {
	found := []any{node}
	for _, name := range At(path) {
		var below []any
		for _, n := range found {
			below = append(below, step(n, name)...)
		}
		found = below
	}
	return found
}

func step(node any, name string) []any {
	switch node := node.(type) {
	case []any:
		if name == "*" {
			return node
		}
	case map[string]any:
		if !strings.Contains(name, "*") {
			if v, ok := node[name]; ok {
				return []any{v}
			}
			return nil
		}
		var out []any
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if ok, err := path.Match(name, key); ok && err == nil {
				out = append(out, node[key])
			}
		}
		return out
	}
	return nil
}

// Objects returns what of the values at a path is an object.
func Objects(node any, path string) []map[string]any {
	var out []map[string]any
	for _, v := range Find(node, path) {
		if o, ok := v.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// Pick returns the named fields of m.
func Pick(m map[string]any, names ...string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		if v := m[name]; v != nil {
			out[name] = v
		}
	}
	return out
}
