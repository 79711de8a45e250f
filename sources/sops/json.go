package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// object is a JSON object with its members in their order.
type object []member

type member struct {
	key   string
	value any // object, []any, string, json.Number, bool, nil, or dropped
}

// dropped stands for an entry of a list that was a comment.
type dropped struct{}

// dataKey is the only key of the JSON around what is of no format.
const dataKey = "data"

// readJSON reads JSON with an object at its root.
func readJSON(content []byte) (*File, error) {
	if trimmed := bytes.TrimSpace(content); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(content) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	read, err := decodeJSON(decoder)
	root, isObject := read.(object)
	if err != nil || !isObject {
		return nil, nil // it is valid: this does not happen
	}
	at := slices.IndexFunc(root, func(m member) bool { return m.key == metadataKey })
	if at < 0 || kindIs(root, ownKind) {
		return nil, nil
	}
	about, isObject := root[at].value.(object)
	if !isObject || len(about) == 0 {
		return nil, nil
	}
	root = slices.Delete(root, at, at+1)
	var leaves []leaf
	if err := leavesInJSON(&leaves, root, nil); err != nil {
		return nil, err
	}
	file := &File{parts: []part{{raw: textsInJSON(about), leaves: leaves}}, encode: func() ([]byte, error) { return encodeJSON(root) }}
	if len(root) == 1 && root[0].key == dataKey {
		file.data = func() []byte {
			text, _ := root[0].value.(string)
			return []byte(text)
		}
	}
	return file, nil
}

func kindIs(root object, kind string) bool {
	return slices.Contains(root, member{"kind", kind})
}

// decodeJSON reads the next value.
func decodeJSON(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return decodeObject(decoder)
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			item, err := decodeJSON(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := decoder.Token()
		return list, err
	default:
		return token, nil
	}
}

func decodeObject(decoder *json.Decoder) (any, error) {
	out := object{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key, isText := token.(string)
		if !isText {
			return nil, errors.New("a key is no text")
		}
		value, err := decodeJSON(decoder)
		if err != nil {
			return nil, err
		}
		out = append(out, member{key, value})
	}
	_, err := decoder.Token()
	return out, err
}

// textsInJSON returns metadata with its scalars as texts.
func textsInJSON(about object) map[string]any {
	out := map[string]any{}
	for _, m := range about {
		out[m.key] = textInJSON(m.value)
	}
	return out
}

func textInJSON(value any) any {
	switch value := value.(type) {
	case object:
		return textsInJSON(value)
	case []any:
		list := make([]any, 0, len(value))
		for _, item := range value {
			list = append(list, textInJSON(item))
		}
		return list
	case json.Number:
		return value.String()
	case bool:
		if value {
			return "true"
		}
		return "false"
	default:
		return value
	}
}

// leavesInJSON adds the values below an object, in their order.
func leavesInJSON(out *[]leaf, of object, path []string) error {
	if len(path) > maxDepth {
		return errDeep
	}
	for i := range of {
		below := append(slices.Clip(path), of[i].key)
		if err := valueInJSON(out, of[i].value, below, func(v any) { of[i].value = v }); err != nil {
			return err
		}
	}
	return nil
}

func valueInJSON(out *[]leaf, value any, path []string, set func(any)) error {
	switch value := value.(type) {
	case nil:
		return nil
	case object:
		return leavesInJSON(out, value, path)
	case []any:
		for i := range value {
			if err := valueInJSON(out, value[i], path, func(v any) { value[i] = v }); err != nil {
				return err
			}
		}
		return nil
	default:
		return scalarInJSON(out, value, path, set)
	}
}

func scalarInJSON(out *[]leaf, is any, path []string, set func(any)) error {
	l := leaf{path: path}
	l.text, l.isText = is.(string)
	if number, isNumber := is.(json.Number); isNumber {
		whole, err := number.Int64()
		is = int(whole)
		if err != nil {
			if is, err = number.Float64(); err != nil {
				return invalid("%s is a number that is too large", l.at())
			}
		}
	}
	l.covered, _ = covers(is)
	l.set = func(v value) error {
		switch v.kind {
		case kindInt, kindFloat:
			set(json.Number(v.written()))
		case kindBool:
			set(v.text == "True")
		case kindComment:
			set(dropped{})
		default:
			set(v.text)
		}
		return nil
	}
	*out = append(*out, l)
	return nil
}

// encodeJSON writes an object as SOPS does.
func encodeJSON(root object) ([]byte, error) {
	var flat, out bytes.Buffer
	if err := writeJSON(&flat, root); err != nil {
		return nil, invalid("it cannot be written as JSON")
	}
	if err := json.Indent(&out, flat.Bytes(), "", "\t"); err != nil {
		return nil, invalid("it cannot be written as JSON")
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func writeJSON(out *bytes.Buffer, value any) error {
	switch value := value.(type) {
	case object:
		out.WriteByte('{')
		for i, m := range value {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeJSON(out, m.key); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := writeJSON(out, m.value); err != nil {
				return err
			}
		}
		out.WriteByte('}')
		return nil
	case []any:
		out.WriteByte('[')
		kept := slices.DeleteFunc(slices.Clone(value), func(item any) bool { return item == dropped{} })
		for i, item := range kept {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeJSON(out, item); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case dropped:
		out.WriteString("null")
		return nil
	default:
		text, err := json.Marshal(value)
		out.Write(text)
		return err
	}
}
