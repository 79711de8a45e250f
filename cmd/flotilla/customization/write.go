package customization

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
)

// Written returns the file of s with its scripts replaced by rules. Everything else stays:
// other documents byte by byte, and the comments in the same document. It returns an error
// for JSON, and for an item of a list.
func (s Source) Written(rules configv1alpha1.CustomizationRules) ([]byte, error) {
	before, chunk, after := s.chunk()
	if text := bytes.TrimSpace(chunk); len(text) > 0 && text[0] == '{' {
		return nil, fmt.Errorf("%s: JSON is not edited: keep scripts in YAML", s)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(chunk, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	if len(doc.Content) != 1 || child(doc.Content[0], "spec") == nil || child(child(doc.Content[0], "spec"), "customizations") == nil {
		return nil, fmt.Errorf("%s: an item of a list is not edited: make it a document of its own", s)
	}
	scripts := child(child(doc.Content[0], "spec"), "customizations")
	scripts.Style = 0
	for _, o := range operations {
		setScript(scripts, o.Field, *o.script(&rules))
	}
	out := bytes.NewBuffer(bytes.Clone(before))
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&doc), encoder.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	return append(out.Bytes(), after...), nil
}

// chunk returns the document and the file before and after it, with the separator lines not
// in the document.
func (s Source) chunk() (before, chunk, after []byte) {
	content := s.File.Content
	begin, offset, number := 0, 0, 0
	for line := range bytes.Lines(content) {
		number++
		if bytes.HasPrefix(line, []byte("---")) {
			if number > s.doc.Line {
				return content[:begin], content[begin:offset], content[offset:]
			}
			begin = offset + len(line)
		}
		offset += len(line)
	}
	return content[:begin], content[begin:], nil
}

// child returns the value of a key; nil if there is none.
func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for n := 0; n+1 < len(node.Content); n += 2 {
		if node.Content[n].Value == key {
			return node.Content[n+1]
		}
	}
	return nil
}

// setScript sets, adds or removes a script.
func setScript(scripts *yaml.Node, field string, given *configv1alpha1.CustomizationScript) {
	if given == nil {
		for n := 0; n+1 < len(scripts.Content); n += 2 {
			if scripts.Content[n].Value == field {
				scripts.Content = append(scripts.Content[:n], scripts.Content[n+2:]...)
				return
			}
		}
		return
	}
	entry := child(scripts, field)
	if entry == nil {
		entry = &yaml.Node{Kind: yaml.MappingNode}
		scripts.Content = append(scripts.Content, text(field), entry)
	}
	script := child(entry, "luaScript")
	if script == nil {
		script = text("")
		entry.Content = append(entry.Content, text("luaScript"), script)
	}
	if script.Value != given.LuaScript {
		script.Kind, script.Tag, script.Alias, script.Content = yaml.ScalarNode, "!!str", nil, nil
		script.Value, script.Style = given.LuaScript, styleOf(given.LuaScript)
		entry.Style = 0
	}
}

// styleOf returns the literal style for a script that can be read back from a block, and
// quotes for any other, such as one of tabs only.
func styleOf(script string) yaml.Style {
	block := text(script)
	block.Style = yaml.LiteralStyle
	data, err := yaml.Marshal(map[string]any{"a": map[string]any{"luaScript": block}})
	var again struct {
		A struct {
			LuaScript string `yaml:"luaScript"`
		} `yaml:"a"`
	}
	if err != nil || yaml.Unmarshal(data, &again) != nil || again.A.LuaScript != script {
		return yaml.DoubleQuotedStyle
	}
	return yaml.LiteralStyle
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
