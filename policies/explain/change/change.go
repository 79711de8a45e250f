// Package change compares two objects field by field.
//
// In go an object before and after a rule of an override; out come the fields
// that differ, a bounded number of them, and a text of one line for each. Of
// kinds it knows only that the contents of a Secret must not be shown.
package change

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Change is what happened to one field.
type Change struct {
	// Path is the field's JSON pointer.
	Path string `json:"path"`
	// Old and New are nil where the field does not exist. The contents of Secrets
	// are replaced by their sizes.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
	// NotCarried means that the change reaches no cluster, as this field is
	// removed from manifests before they are sent.
	NotCarried bool `json:"notCarried,omitempty"`
}

// most is how many changes of one rule are kept: a patch may make thousands.
const most = 200

// Between returns what changed from old to now, sorted by path. Objects and lists
// of equal length are compared field by field, all else as a whole.
func Between(old, now any) []Change { return upTo(most, old, now) }

// All is Between for callers that cannot do without any change.
func All(old, now any) []Change { return upTo(math.MaxInt, old, now) }

func upTo(most int, old, now any) []Change {
	w := walker{most: most}
	w.walk("", old, now)
	return w.out
}

// walker collects changes, up to most.
type walker struct {
	most int
	out  []Change
}

// Carried returns the changes that reach a cluster, and those of all that do not,
// with NotCarried set, sorted by path. all compares the objects as overrides see
// them, carried what is sent of them.
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

// within reports whether path is other, or below it.
func within(path, other string) bool { return path == other || strings.HasPrefix(path, other+"/") }

func (w *walker) walk(path string, old, now any) {
	if len(w.out) >= w.most {
		return
	}
	switch was := old.(type) {
	case map[string]any:
		if is, ok := now.(map[string]any); ok {
			w.walkObject(path, was, is)
			return
		}
	case []any:
		if is, ok := now.([]any); ok && len(is) == len(was) {
			for i := range was {
				w.walk(path+"/"+strconv.Itoa(i), was[i], is[i])
			}
			return
		}
	}
	if !reflect.DeepEqual(old, now) {
		w.out = append(w.out, Change{Path: path, Old: old, New: now})
	}
}

func (w *walker) walkObject(path string, old, now map[string]any) {
	keys := slices.Collect(maps.Keys(old))
	for key := range now {
		if _, both := old[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		w.walk(path+"/"+Escape(key), old[key], now[key])
	}
}

// Escape returns a key as a token of a JSON pointer.
func Escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Conceal replaces the contents of a Secret in its changes by their sizes.
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

// Text returns the change on one line, with long values cut.
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

// differing returns the lines of two texts without the equal ones at both ends.
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
	return excerpt.Runes(strings.TrimSpace(out.String()), maxValue)
}
