package customizations

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// at splits a path as it is written in this package: names between points.
func at(path string) []string { return strings.Split(path, ".") }

// find returns all that stands at a path. A name with a star matches names of
// an object's fields, and a star all entries of a list, too. Fields come in the
// order of their names.
func find(node any, path string) []any {
	found := []any{node}
	for _, name := range at(path) {
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

// objects returns what of the values at a path is an object.
func objects(node any, path string) []map[string]any {
	var out []map[string]any
	for _, v := range find(node, path) {
		if o, ok := v.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}
