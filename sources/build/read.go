package build

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Document is one YAML document of a file, or an entry of a list in it.
type Document struct {
	// Number counts the documents of the file that are not empty, from 1.
	Number int
	// Line is the line on which it begins, from 1.
	Line int
	// Fields are its content; nil if it is not a mapping.
	Fields map[string]any

	node *yaml.Node
}

// Read reads YAML, or JSON, as a build does: within limits, and without anything
// ambiguous. A Kubernetes list is returned as its items.
//
// Errors: ErrInvalid, ErrTooLarge, with which no documents are returned.
func Read(content []byte, limits Limits) ([]Document, error) {
	limits = limits.withDefaults()
	docs, _, err := parse(content, limits, math.MaxInt, nil)
	if err != nil {
		return nil, err
	}
	var out []Document
	for n, doc := range docs {
		items, err := doc.items()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", doc.node.Line, err)
		}
		for _, item := range items {
			if len(out) == limits.Objects {
				return nil, fmt.Errorf("%w: more than %d objects", ErrTooLarge, limits.Objects)
			}
			in := reader{left: limits.Document, depth: 2 * limits.Depth}
			value, err := in.value(item.node)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", item.node.Line, err)
			}
			fields, _ := value.(map[string]any)
			out = append(out, Document{Number: n + 1, Line: item.node.Line, Fields: fields, node: item.node})
		}
	}
	return out, nil
}

// LineOf returns the line of a field by its path, such as spec.rules[0].name or
// metadata.labels[a.b/c]; for a field that does not exist, the line of the
// innermost parent that does.
func (d Document) LineOf(path string) int {
	node, line := d.node, d.Line
	for path != "" {
		var step string
		step, path = cutPath(path)
		next, at := follow(node, step)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line
}

// cutPath splits the first step off a path.
func cutPath(path string) (step, rest string) {
	if inner, found := strings.CutPrefix(path, "["); found {
		step, rest, _ = strings.Cut(inner, "]")
		return step, strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path, ""
	}
	return path[:end], strings.TrimPrefix(path[end:], ".")
}

// follow returns the node to which a step leads, and its line.
func follow(node *yaml.Node, step string) (*yaml.Node, int) {
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node == nil {
		return nil, 0
	}
	switch node.Kind {
	case yaml.MappingNode:
		for n := 0; n+1 < len(node.Content); n += 2 {
			if node.Content[n].Value == step {
				return node.Content[n+1], node.Content[n].Line
			}
		}
	case yaml.SequenceNode:
		if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(node.Content) {
			return node.Content[n], node.Content[n].Line
		}
	}
	return nil, 0
}
