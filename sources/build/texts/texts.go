// Package texts goes through the texts of YAML.
//
// In goes a document; out comes each text in it, with the key that it is below, as a reader finds it who resolves aliases. How often
// an alias may be used is bounded by whoever parsed the document.
package texts

import "go.yaml.in/yaml/v3"

// Each calls visit for each text of a document, with the key that it is below, until visit fails. Annotations are left out, except
// where an alias elsewhere refers to them.
func Each(document *yaml.Node, visit func(key, value string) error) error {
	type place struct {
		node *yaml.Node
		key  string
	}
	pending := []place{{node: document}}
	for len(pending) > 0 {
		at := pending[0]
		pending = pending[1:]
		node := resolved(at.node)
		if node.Kind == yaml.ScalarNode {
			if err := visit(at.key, node.Value); err != nil {
				return err
			}
		}
		for n, c := range node.Content {
			key := at.key
			if node.Kind == yaml.MappingNode && n%2 == 1 {
				if key = resolved(node.Content[n-1]).Value; key == "annotations" {
					continue
				}
			}
			pending = append(pending, place{c, key})
		}
	}
	return nil
}

// resolved is what an alias stands for: a key can be one, too.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
