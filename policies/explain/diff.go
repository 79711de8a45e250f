package explain

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxChanges of one rule that are kept: a patch may change thousands.
const maxChanges = 200

// diff returns what changed from old to now, by path. Objects and lists of
// equal length are compared by what they hold, all else as a whole.
func diff(old, now any) []Change {
	var out []Change
	walk("", old, now, &out)
	return out
}

func walk(path string, old, now any, out *[]Change) {
	if len(*out) >= maxChanges {
		return
	}
	switch was := old.(type) {
	case map[string]any:
		if is, ok := now.(map[string]any); ok {
			walkObject(path, was, is, out)
			return
		}
	case []any:
		if is, ok := now.([]any); ok && len(is) == len(was) {
			for i := range was {
				walk(path+"/"+strconv.Itoa(i), was[i], is[i], out)
			}
			return
		}
	}
	if !reflect.DeepEqual(old, now) {
		*out = append(*out, Change{Path: path, Old: old, New: now})
	}
}

func walkObject(path string, old, now map[string]any, out *[]Change) {
	keys := slices.Collect(maps.Keys(old))
	for key := range now {
		if _, both := old[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		walk(path+"/"+escape(key), old[key], now[key], out)
	}
}

// escape writes a key as a token of a JSON pointer.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// conceal takes the contents of a Secret out of changes to it.
func conceal(changes []Change) {
	for i := range changes {
		c := &changes[i]
		if field, _, _ := strings.Cut(strings.TrimPrefix(c.Path, "/"), "/"); field == "data" || field == "stringData" || field == "" {
			c.Old, c.New = concealed(c.Old), concealed(c.New)
		}
	}
}

func concealed(value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return fmt.Sprintf("(%d bytes)", len(v))
	case map[string]any:
		return fmt.Sprintf("(%d keys)", len(v))
	default:
		return "(concealed)"
	}
}
