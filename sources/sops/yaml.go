package sops

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// metadataKey is the key of a file's metadata.
const metadataKey = "sops"

// ownKind is a kind of object that stays encrypted until an operator in the cluster opens it.
const ownKind = "SopsSecret"

// readYAML reads YAML. Its documents may be encrypted together or each for itself, or not at all.
func readYAML(content []byte) (*File, error) {
	var docs []*yaml.Node
	var sealed []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		doc := &yaml.Node{}
		err := decoder.Decode(doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil // whoever uses the file reports it
		}
		docs = append(docs, doc)
		if isSealed(doc) {
			sealed = append(sealed, doc)
		}
	}
	if len(sealed) == 0 {
		return nil, nil
	}
	parts, err := partsOf(sealed)
	if err != nil {
		return nil, err
	}
	return &File{parts: parts, encode: func() ([]byte, error) { return encodeYAML(docs) }}, nil
}

// isSealed reports whether a document is encrypted.
func isSealed(doc *yaml.Node) bool {
	root := rootOf(doc)
	about := childOf(root, metadataKey)
	if about == nil || about.Kind != yaml.MappingNode || len(about.Content) == 0 {
		return false
	}
	kind := childOf(root, "kind")
	return kind == nil || kind.Value != ownKind
}

func rootOf(doc *yaml.Node) *yaml.Node {
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0]
	}
	return nil
}

func childOf(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// partsOf returns what the hashes of documents cover: those with one hash were encrypted together.
func partsOf(docs []*yaml.Node) ([]part, error) {
	var parts []part
	byHash := map[string]int{}
	for _, doc := range docs {
		root := rootOf(doc)
		raw, err := textsOf(childOf(root, metadataKey), 0)
		if err != nil {
			return nil, err
		}
		fields, _ := raw.(map[string]any)
		hash, _ := fields["mac"].(string)
		at, known := byHash[hash]
		if !known {
			at = len(parts)
			byHash[hash] = at
			parts = append(parts, part{raw: fields})
		}
		if err := leavesOf(&parts[at].leaves, root, nil, 0); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// maxMetadataDepth is how deeply metadata may be nested.
const maxMetadataDepth = 10

// textsOf returns metadata with its scalars as texts.
func textsOf(node *yaml.Node, depth int) (any, error) {
	if depth > maxMetadataDepth {
		return nil, invalid("its metadata is nested too deep")
	}
	switch node.Kind {
	case yaml.ScalarNode:
		if node.ShortTag() == "!!null" {
			return nil, nil
		}
		return node.Value, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			v, err := textsOf(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		fields := map[string]any{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			v, err := textsOf(node.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			fields[node.Content[i].Value] = v
		}
		return fields, nil
	default:
		return nil, errAlias
	}
}

var errAlias = invalid("it has a YAML alias, as no encrypted file has")

// leavesOf adds the values below a node, in their order.
func leavesOf(out *[]leaf, node *yaml.Node, path []string, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	switch node.Kind {
	case yaml.MappingNode:
		return fieldsOf(out, node, path, depth)
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if err := leavesOf(out, item, path, depth+1); err != nil {
				return err
			}
		}
		return nil
	case yaml.ScalarNode:
		return leafOf(out, node, path)
	default:
		return errAlias
	}
}

func fieldsOf(out *[]leaf, node *yaml.Node, path []string, depth int) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			return invalid("a key on line %d is no text", key.Line)
		}
		if len(path) == 0 && key.Value == metadataKey {
			continue
		}
		if err := leavesOf(out, node.Content[i+1], append(slices.Clip(path), key.Value), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func leafOf(out *[]leaf, node *yaml.Node, path []string) error {
	var is any
	if err := node.Decode(&is); err != nil {
		return invalid("the value on line %d is not what its tag says", node.Line)
	}
	if is == nil {
		return nil
	}
	covered, known := covers(is)
	if !known {
		return invalid("the value on line %d is of a kind that no encrypted file has", node.Line)
	}
	l := leaf{path: path, covered: covered, set: func(v value) error { return put(node, v) }}
	l.text, l.isText = is.(string)
	*out = append(*out, l)
	return nil
}

// droppedTag is that of an entry of a list that was a comment.
const droppedTag = "!dropped"

// put puts what a value holds into its node.
func put(node *yaml.Node, v value) error {
	node.Style, node.Tag, node.Value = 0, "", v.written()
	switch v.kind {
	case kindComment:
		node.Tag = droppedTag
	case kindText, kindBytes:
		if !utf8.ValidString(v.text) {
			return invalid("the value on line %d holds bytes that are no text", node.Line)
		}
		node.Tag, node.Style = "!!str", yaml.DoubleQuotedStyle
	}
	return nil
}

// encodeYAML writes documents without their metadata and without comments that are encrypted.
func encodeYAML(docs []*yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	for _, doc := range docs {
		if isSealed(doc) {
			root := rootOf(doc)
			for i := 0; i+1 < len(root.Content); i += 2 {
				if root.Content[i].Value == metadataKey {
					root.Content = slices.Delete(root.Content, i, i+2)
					break
				}
			}
			tidy(doc)
		}
		if err := encoder.Encode(doc); err != nil {
			return nil, invalid("it cannot be written as YAML")
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, invalid("it cannot be written as YAML")
	}
	return out.Bytes(), nil
}

func tidy(node *yaml.Node) {
	for _, comment := range []*string{&node.HeadComment, &node.LineComment, &node.FootComment} {
		if strings.Contains(*comment, string(mark)) {
			*comment = ""
		}
	}
	if node.Kind == yaml.SequenceNode {
		node.Content = slices.DeleteFunc(node.Content, func(item *yaml.Node) bool { return item.Tag == droppedTag })
	}
	for _, below := range node.Content {
		tidy(below)
	}
}
