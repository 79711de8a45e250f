package words

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// At splits a path into its field names, which are separated by points.
func At(path string) []string { return strings.Split(path, ".") }

// Find returns all values at a path. A name with stars matches field names as
// path.Match does, and a single star matches all entries of a list, too. Fields
// come in the order of their names.
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

// Objects returns those of the values at a path that are objects.
func Objects(node any, path string) []map[string]any {
	var out []map[string]any
	for _, v := range Find(node, path) {
		if o, ok := v.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// Pick returns a map of those of the named fields of m that are set; never nil.
func Pick(m map[string]any, names ...string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		if v := m[name]; v != nil {
			out[name] = v
		}
	}
	return out
}
