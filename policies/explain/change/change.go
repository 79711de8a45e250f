// Package change compares two objects field by field.
//
// In go what a rule of an override was given and what it left; out come the fields that
// differ, bounded, and as a text of one line each. It knows nothing of kinds but that a
// Secret's contents are not for everybody.
package change

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Change of one field.
type Change struct {
	// Path is a JSON pointer.
	Path string `json:"path"`
	// Old and New are nil where the field is not there. The contents of Secrets
	// are not shown.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
	// NotCarried says that it reaches no cluster: what is there is not for overrides.
	NotCarried bool `json:"notCarried,omitempty"`
}

// most is how many changes of one rule are kept: a patch may change thousands.
const most = 200

// Between returns what changed from old to now, by path. Objects and lists of
// equal length are compared by what they hold, all else as a whole.
func Between(old, now any) []Change {
	var out []Change
	walk("", old, now, &out)
	return out
}

// Carried returns changes as they reach a cluster: what is carried of them, and, marked as such,
// those of which nothing is. It is sorted by path.
func Carried(all, carried []Change) []Change {
	out := slices.Clone(carried)
	for _, c := range all {
		if !slices.ContainsFunc(carried, func(k Change) bool { return within(c.Path, k.Path) || within(k.Path, c.Path) }) {
			c.NotCarried = true
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// within reports whether a path is another one, or leads on from it.
func within(path, other string) bool { return path == other || strings.HasPrefix(path, other+"/") }

func walk(path string, old, now any, out *[]Change) {
	if len(*out) >= most {
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

// Conceal takes the contents of a Secret out of changes to it.
func Conceal(changes []Change) {
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

// Text shows a change of a field, short.
func (c Change) Text() string {
	if c.NotCarried {
		return c.values() + " (not carried)"
	}
	return c.values()
}

func (c Change) values() string {
	was, is := c.Old, c.New
	a, texts := was.(string)
	b, both := is.(string)
	if texts && both && (strings.Contains(a, "\n") || strings.Contains(b, "\n")) {
		was, is = differing(a, b)
	}
	switch {
	case c.Old == nil:
		return "new: " + short(is)
	case c.New == nil:
		return "removed: " + short(was)
	default:
		return short(was) + " → " + short(is)
	}
}

// differing returns the lines of two texts without those at both ends that are
// equal.
func differing(a, b string) (string, string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return strings.Join(x, "\n"), strings.Join(y, "\n")
}

// maxValue is how many characters of a value are shown.
const maxValue = 70

func short(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	text := []rune(strings.TrimSpace(out.String()))
	if len(text) > maxValue {
		return string(text[:maxValue-1]) + "…"
	}
	return string(text)
}
