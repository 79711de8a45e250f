package override

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Faults of a path.
var (
	errPath       = errors.New("path is not a JSON pointer")
	errNoSuchPath = errors.New("path does not exist")
	errNoString   = errors.New("value is not a string")
)

// CheckPointer reports whether path is a JSON pointer (RFC 6901).
func CheckPointer(path string) error {
	_, err := segments(path)
	return err
}

func segments(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' {
		return nil, fmt.Errorf("%w: %q does not start with a slash", errPath, path)
	}
	parts := strings.Split(path[1:], "/")
	for i, p := range parts {
		for j := range len(p) {
			if p[j] == '~' && (j+1 == len(p) || p[j+1] != '0' && p[j+1] != '1') {
				return nil, fmt.Errorf("%w: %q has a stray ~, which is written ~0", errPath, path)
			}
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// lookup returns what is at path.
func lookup(root map[string]any, path string) (any, error) {
	keys, err := segments(path)
	if err != nil {
		return nil, err
	}
	return walk(root, keys)
}

func walk(node any, keys []string) (any, error) {
	for _, key := range keys {
		var err error
		if node, err = child(node, key); err != nil {
			return nil, err
		}
	}
	return node, nil
}

// changeAt replaces the string at path by what change makes of it.
func changeAt(root map[string]any, path string, change func(string) (string, error)) error {
	keys, err := segments(path)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("%w: the path means the whole manifest", errNoString)
	}
	last := keys[len(keys)-1]
	parent, err := walk(root, keys[:len(keys)-1])
	if err != nil {
		return err
	}
	value, err := child(parent, last)
	if err != nil {
		return err
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%w: use plaintext for other values", errNoString)
	}
	if text, err = change(text); err != nil {
		return err
	}
	switch parent := parent.(type) {
	case map[string]any:
		parent[last] = text
	case []any:
		i, _ := index(last, len(parent)) // child has checked it
		parent[i] = text
	}
	return nil
}

func child(node any, key string) (any, error) {
	switch parent := node.(type) {
	case map[string]any:
		if v, ok := parent[key]; ok {
			return v, nil
		}
	case []any:
		if i, ok := index(key, len(parent)); ok {
			return parent[i], nil
		}
	}
	return nil, fmt.Errorf("%w: there is no %q: narrow the rule to what has it", errNoSuchPath, key)
}

func index(key string, n int) (int, bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0 && i < n && strconv.Itoa(i) == key
}
