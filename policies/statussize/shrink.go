package statussize

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
	// leastStatus is how large a status may always be; below that, nothing is measured.
	leastStatus = 32 << 10
	// mostText bounds the texts in a status that is too large, and mostPath the
	// path of a list in the message about it.
	mostText = 1 << 10
	mostPath = 128
	// mostNames is how many lists the message about it names.
	mostNames = 5
	// mostEntries is to how many entries lists are cut at first, and leastFields how many fields of a map stay in
	// any case: a map with few fields is a structure, one with many a collection.
	mostEntries = 4096
	leastFields = 64
)

// Shrink returns the status in a size that can be stored with the template, and what was left out of it; empty for
// nothing. In a status that is too large, texts are shortened, and then the longest lists and maps are cut to the
// same number of entries, of which the first stay. ok is false where even that is too large.
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

// cut is how many entries the lists at one path had and have.
type cut struct{ had, has int }

// shrinker shortens values. It may be used on its own result, as often as needed:
// what it records is the sum of all cuts.
type shrinker struct {
	entries int // entries that a list may have
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

// below returns the path of a field, cut where it is nested deeply.
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

// String returns what was left out.
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
