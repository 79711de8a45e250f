package build

import (
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"
)

// reader converts YAML nodes into the values of an object: maps, lists, strings,
// int64, float64, bool and nil. What looks like a date stays a string, as with
// kubectl.
type reader struct {
	left  int // bytes that the object may still have
	depth int
}

// perNode is how many bytes a node adds to the size of an object, in addition to
// its text.
const perNode = 3

func (r *reader) value(node *yaml.Node) (any, error) {
	if r.depth--; r.depth < 0 {
		return nil, fmt.Errorf("%w: it is nested too deep", ErrTooLarge)
	}
	defer func() { r.depth++ }()
	if r.left -= len(node.Value) + perNode; r.left < 0 {
		return nil, fmt.Errorf("%w: it has too many bytes for one object", ErrTooLarge)
	}
	switch node.Kind {
	case yaml.AliasNode:
		return r.value(node.Alias)
	case yaml.MappingNode:
		out := make(map[string]any, len(node.Content)/2)
		return out, r.fields(node, out)
	case yaml.SequenceNode:
		out := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			v, err := r.value(item)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.ScalarNode:
		return scalar(node)
	default:
		return nil, fmt.Errorf("%w: line %d is not a value", ErrInvalid, node.Line)
	}
}

// fields converts a mapping. Its own keys go before those that it merges.
func (r *reader) fields(node *yaml.Node, out map[string]any) error {
	for n := 0; n+1 < len(node.Content); n += 2 {
		key := node.Content[n]
		if key.ShortTag() == "!!merge" {
			continue
		}
		v, err := r.value(node.Content[n+1])
		if err != nil {
			return err
		}
		r.left -= len(key.Value) + perNode
		out[key.Value] = v
	}
	for n := 0; n+1 < len(node.Content); n += 2 {
		if node.Content[n].ShortTag() != "!!merge" {
			continue
		}
		merged, err := r.value(node.Content[n+1])
		if err != nil {
			return err
		}
		if err := mergeInto(out, merged); err != nil {
			return err
		}
	}
	return nil
}

// mergeInto adds the fields of a mapping, or of a list of mappings, that out does
// not have.
func mergeInto(out map[string]any, merged any) error {
	switch m := merged.(type) {
	case map[string]any:
		for k, v := range m {
			if _, own := out[k]; !own {
				out[k] = v
			}
		}
		return nil
	case []any:
		for _, item := range m {
			if err := mergeInto(out, item); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("%w: << merges something that is no mapping", ErrInvalid)
	}
}

// wholeBelow is the size up to which all integers are exact in a float64.
const wholeBelow = 1 << 53

func scalar(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var v bool
		err := node.Decode(&v)
		return v, wrong(node, err)
	case "!!int":
		var v int64
		if node.Decode(&v) == nil {
			return v, nil
		}
		return number(node)
	case "!!float":
		return number(node)
	default:
		return node.Value, nil
	}
}

// number converts a float; an integral one becomes an integer, as in JSON.
func number(node *yaml.Node) (any, error) {
	var v float64
	if err := node.Decode(&v); err != nil {
		return nil, wrong(node, err)
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil, fmt.Errorf("%w: %s is not a number that an object may hold", ErrInvalid, clip(node.Value))
	}
	if v == math.Trunc(v) && math.Abs(v) < wholeBelow {
		return int64(v), nil
	}
	return v, nil
}

// wrong returns an error without the value, which may be a Secret's.
func wrong(node *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: line %d: the value is not what its tag %s says", ErrInvalid, node.Line, clip(node.ShortTag()))
}
