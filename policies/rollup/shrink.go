package rollup

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Bounds of a template's status, in bytes as it is stored.
const (
	mostTemplate = 1 << 20
	// leastStatus is how much a status may always have, and what nobody counts.
	leastStatus = 32 << 10
	// mostText bounds a text in a status that is too large, and mostPath the name
	// of a list.
	mostText = 1 << 10
	mostPath = 128
	// mostEntries is how many entries of a list are left at first, and
	// leastFields how many of a map in any case: a map with few is a structure,
	// one with many a collection.
	mostEntries = 4096
	leastFields = 64
)

// Shrink returns the status as the template can hold it, and what was left out
// of it, empty for nothing. In a status that is too large texts are shortened
// and then the longest lists and maps, all to the same number of entries, of
// which the first stay. It is false where that does not help.
func Shrink(template *unstructured.Unstructured, status map[string]any) (shrunk map[string]any, left string, ok bool) {
	size := encoded(status)
	if size <= leastStatus {
		return status, "", true
	}
	bare := maps.Clone(template.Object)
	delete(bare, "status")
	room := max(leastStatus, mostTemplate-encoded(bare))
	if size <= room {
		return status, "", true
	}
	s := &shrinker{lists: map[string]cut{}}
	shrunk = status
	for s.entries = size; ; s.entries = min(s.entries/2, mostEntries) {
		shrunk, _ = s.value("", shrunk).(map[string]any)
		if encoded(shrunk) <= room {
			return shrunk, "left out of the template's status, which is too large: " + s.String(), true
		}
		if s.entries <= 1 {
			return nil, fmt.Sprintf("the template's status is too large to be written: there is room for %d bytes", room), false
		}
	}
}

func encoded(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return mostTemplate
	}
	return len(data)
}

// cut is what was done to the lists at one path.
type cut struct{ had, has int }

// shrinker shortens values. What was shortened before and is again loses its
// tail once more, as if it had been done at once.
type shrinker struct {
	entries int // most entries of a list
	texts   bool
	lists   map[string]cut // by path
}

func (s *shrinker) value(path string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		keys := s.first(path, slices.Sorted(maps.Keys(v)), max(s.entries, leastFields))
		out := make(map[string]any, len(keys))
		for _, k := range keys {
			out[k] = s.value(below(path, k), v[k])
		}
		return out
	case []any:
		out := slices.Clone(v[:min(len(v), s.entries)])
		s.note(path, len(v), len(out))
		for i := range out {
			out[i] = s.value(path, out[i])
		}
		return out
	case string:
		if len(v) > mostText {
			s.texts = true
			return excerpt.Bytes(v, mostText)
		}
	}
	return v
}

// below returns the path of a field; of what is nested deeply only the beginning.
func below(path, field string) string {
	if len(path) > mostPath {
		return path
	}
	return excerpt.Bytes(strings.TrimPrefix(path+"."+field, "."), mostPath)
}

func (s *shrinker) first(path string, keys []string, n int) []string {
	out := keys[:min(len(keys), n)]
	s.note(path, len(keys), len(out))
	return out
}

func (s *shrinker) note(path string, had, has int) {
	if has == had {
		return
	}
	c := s.lists[path]
	c.had, c.has = max(c.had, had), has
	s.lists[path] = c
}

// String says what was left out.
func (s *shrinker) String() string {
	var out []string
	for i, path := range slices.Sorted(maps.Keys(s.lists)) {
		if i == mostNames {
			out = append(out, fmt.Sprintf("and %d more lists", len(s.lists)-i))
			break
		}
		out = append(out, fmt.Sprintf("all but %d of %d entries of %s", s.lists[path].has, s.lists[path].had, path))
	}
	if s.texts {
		out = append(out, fmt.Sprintf("the ends of texts beyond %d bytes", mostText))
	}
	return strings.Join(out, ", ")
}
