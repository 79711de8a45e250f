package ownership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// errIntricate says that an object's managedFields name its values in more ways
// than any server does.
var errIntricate = errors.New("its managedFields name values in more ways than a server does")

const (
	// effort is how much of an object, and of what is desired of it, is compared or
	// hashed, in bytes: each part of it several times over.
	effort = 64 << 20
	// short is up to which length a list is searched from its start; longer ones
	// are indexed.
	short = 16
	// mostKeys is how many key fields the items of a list may have.
	mostKeys = 16
	// mostSorts is how many sets of key fields a list may be searched by, and how
	// many its items may have.
	mostSorts = 16
)

// reader finds and compares parts of one object, and of what is desired of it. It
// keeps the index of each long list that it has searched: none may change
// meanwhile. The zero value is ready.
type reader struct {
	lists map[*any]*list
	// spent is how much was compared, in bytes or so.
	spent int
}

// exhausted reports whether more was compared than any object of a server's takes.
// Comparisons are no longer valid then.
func (r *reader) exhausted() bool { return r.spent > effort }

// list returns the index of a list; nil for one that is short.
func (r *reader) list(items []any) *list {
	if len(items) <= short {
		return nil
	}
	if r.lists == nil {
		r.lists = map[*any]*list{}
	}
	if known := r.lists[&items[0]]; known != nil && len(known.items) == len(items) {
		return known
	}
	out := &list{items: items}
	r.lists[&items[0]] = out
	return out
}

// step goes from a value to the part of it that one path element names.
func (r *reader) step(element string, value any) (child any, found bool, err error) {
	kind, rest, ok := strings.Cut(element, ":")
	if !ok {
		return nil, false, fmt.Errorf("path element %q", excerpt.Bytes(element, mostText))
	}
	switch kind {
	case "f":
		object, _ := value.(map[string]any)
		child, found = object[rest]
		return child, found, nil
	case "i":
		index, err := strconv.Atoi(rest)
		items, _ := value.([]any)
		if err != nil || index < 0 || index >= len(items) {
			return nil, false, err
		}
		return items[index], true, nil
	case "k", "v":
		return r.find(rest, value)
	default:
		return nil, false, fmt.Errorf("path element %q", excerpt.Bytes(element, mostText))
	}
}

// find returns the item of a list that a path element names by its key fields or
// by its value: "k:" and "v:" are cut off.
func (r *reader) find(wanted string, value any) (any, bool, error) {
	var want any
	if err := utiljson.Unmarshal([]byte(wanted), &want); err != nil {
		return nil, false, fmt.Errorf("path element %q: %w", excerpt.Bytes(wanted, mostText), err)
	}
	items, _ := value.([]any)
	if index := r.list(items); index != nil {
		return index.find(want)
	}
	for _, item := range items {
		if matches(want, item) {
			return item, true, nil
		}
	}
	return nil, false, nil
}

// counterpart returns the item of a list that has the same key fields as item,
// or that is the same where there are none.
func (r *reader) counterpart(keys map[string]any, item any, items []any) (any, bool, error) {
	if len(keys) > mostKeys {
		return nil, false, errIntricate
	}
	if index := r.list(items); index != nil {
		return index.counterpart(keys, item)
	}
	for _, other := range items {
		if pair, ok := objects(item, other); ok && len(keys) > 0 {
			if r.sameKey(keys, pair[0], pair[1]) {
				return other, true, nil
			}
		} else if r.same(item, other) {
			return other, true, nil
		}
	}
	return nil, false, nil
}

// list is a list with indexes, each of which is made when it is first needed.
type list struct {
	items []any
	// exact has, by the names of key fields and then by the text of their values, the
	// first object of those values.
	exact map[string]map[string]int
	// scalars has the first item of each scalar value, by its text; equal the first
	// item of each value, numbers of whatever type being the same.
	scalars, equal map[string]int
	// groups are the objects of the list by which of the key fields they have.
	groups map[string][]*group
}

// group are objects of a list that have the same ones of its key fields.
type group struct {
	fields  []string
	members []int
	// first has, by a subset of fields and then by their values, the first member.
	first map[string]map[string]int
}

// find does what the reader does for short lists.
func (l *list) find(want any) (any, bool, error) {
	keys, isKey := want.(map[string]any)
	if !isKey {
		if !scalar(want) {
			return nil, false, nil
		}
		if l.scalars == nil {
			l.scalars = l.index(func(item any) (string, bool) { return string(appendValue(nil, item)), scalar(item) })
		}
		at, found := l.scalars[string(appendValue(nil, want))]
		return l.at(at, found)
	}
	fields := slices.Sorted(maps.Keys(keys))
	index, err := l.exactIndex(fields)
	if err != nil {
		return nil, false, err
	}
	key, scalars := exactKey(fields, keys)
	at, found := index[key]
	return l.at(at, found && scalars)
}

func (l *list) at(at int, found bool) (any, bool, error) {
	if !found {
		return nil, false, nil
	}
	return l.items[at], true, nil
}

// index returns the first item of each text, of those that have one.
func (l *list) index(text func(item any) (string, bool)) map[string]int {
	out := make(map[string]int, len(l.items))
	for at, item := range l.items {
		if key, has := text(item); has {
			if _, known := out[key]; !known {
				out[key] = at
			}
		}
	}
	return out
}

// exactIndex returns the first item of all values of the given fields, one that
// is missing being null.
func (l *list) exactIndex(fields []string) (map[string]int, error) {
	if len(fields) > mostKeys {
		return nil, errIntricate
	}
	sort := encoded(fields)
	if index := l.exact[sort]; index != nil {
		return index, nil
	}
	if len(l.exact) == mostSorts {
		return nil, errIntricate
	}
	if l.exact == nil {
		l.exact = map[string]map[string]int{}
	}
	l.exact[sort] = l.index(func(item any) (string, bool) {
		object, is := item.(map[string]any)
		key, scalars := exactKey(fields, object)
		return key, is && scalars
	})
	return l.exact[sort], nil
}

// exactKey returns a text that two objects share only if their fields have the
// same values, and whether all of these are scalars.
func exactKey(fields []string, object map[string]any) (string, bool) {
	var out []byte
	for _, field := range fields {
		if !scalar(object[field]) {
			return "", false
		}
		out = appendValue(out, object[field])
	}
	return string(out), true
}

// counterpart does what the reader does for short lists.
func (l *list) counterpart(keys map[string]any, item any) (any, bool, error) {
	object, is := item.(map[string]any)
	if len(keys) == 0 || !is {
		return l.equalTo(item)
	}
	fields := slices.Sorted(maps.Keys(keys))
	groups, err := l.groupsOf(fields)
	if err != nil {
		return nil, false, err
	}
	has := present(fields, object)
	best := -1
	for _, g := range groups {
		shared := slices.DeleteFunc(slices.Clone(has), func(field string) bool { return !slices.Contains(g.fields, field) })
		if len(shared) == 0 {
			continue
		}
		at, found, err := g.find(l.items, shared, object)
		if err != nil {
			return nil, false, err
		}
		if found && (best < 0 || at < best) {
			best = at
		}
	}
	return l.at(max(best, 0), best >= 0)
}

// equalTo returns the first item that is the same as the given one.
func (l *list) equalTo(item any) (any, bool, error) {
	if l.equal == nil {
		l.equal = l.index(func(other any) (string, bool) { return string(appendSame(nil, other)), true })
	}
	at, found := l.equal[string(appendSame(nil, item))]
	return l.at(at, found)
}

// groupsOf returns the objects of the list by which of the fields they have.
func (l *list) groupsOf(fields []string) ([]*group, error) {
	sort := encoded(fields)
	if groups, known := l.groups[sort]; known {
		return groups, nil
	}
	if len(l.groups) == mostSorts {
		return nil, errIntricate
	}
	by := map[string]*group{}
	var out []*group
	for at, item := range l.items {
		object, is := item.(map[string]any)
		if !is {
			continue
		}
		has := present(fields, object)
		name := encoded(has)
		if by[name] == nil {
			if len(out) == mostSorts {
				return nil, errIntricate
			}
			by[name] = &group{fields: has, first: map[string]map[string]int{}}
			out = append(out, by[name])
		}
		by[name].members = append(by[name].members, at)
	}
	if l.groups == nil {
		l.groups = map[string][]*group{}
	}
	l.groups[sort] = out
	return out, nil
}

// find returns the first member of which some fields are the same as object's.
func (g *group) find(items []any, fields []string, object map[string]any) (int, bool, error) {
	sort := encoded(fields)
	index := g.first[sort]
	if index == nil {
		if len(g.first) == mostSorts {
			return 0, false, errIntricate
		}
		index = make(map[string]int, len(g.members))
		for _, at := range g.members {
			member, _ := items[at].(map[string]any)
			key := sameKeyText(fields, member)
			if _, known := index[key]; !known {
				index[key] = at
			}
		}
		g.first[sort] = index
	}
	at, found := index[sameKeyText(fields, object)]
	return at, found, nil
}

// present returns those of fields that object has.
func present(fields []string, object map[string]any) []string {
	out := make([]string, 0, len(fields))
	for _, field := range fields {
		if _, has := object[field]; has {
			out = append(out, field)
		}
	}
	return out
}

// encoded returns a text that no other fields have.
func encoded(fields []string) string {
	var out []byte
	for _, field := range fields {
		out = appendText(out, field)
	}
	return string(out)
}

// sameKeyText returns a text that two objects share exactly if their fields are
// the same.
func sameKeyText(fields []string, object map[string]any) string {
	var out []byte
	for _, field := range fields {
		out = appendSame(out, object[field])
	}
	return string(out)
}

// appendSame writes a value as same compares it: a number is one, of whatever type
// it is.
func appendSame(out []byte, value any) []byte {
	if n, is := number(value); is {
		return appendValue(out, n)
	}
	return appendValue(out, value)
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// appendValue writes a value so that no two that differ are written alike.
func appendValue(out []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(out, 'n')
	case string:
		return appendText(append(out, 's'), v)
	case bool:
		if v {
			return append(out, 't')
		}
		return append(out, 'f')
	case int64:
		return binary.AppendVarint(append(out, 'i'), v)
	case float64:
		if v == 0 {
			v = 0 // -0 is the same
		}
		return binary.BigEndian.AppendUint64(append(out, 'd'), math.Float64bits(v))
	case []any:
		out = binary.AppendUvarint(append(out, '['), uint64(len(v)))
		for _, item := range v {
			out = appendValue(out, item)
		}
		return out
	case map[string]any:
		out = binary.AppendUvarint(append(out, '{'), uint64(len(v)))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = appendValue(appendText(out, key), v[key])
		}
		return out
	default:
		return appendText(append(out, '?'), fmt.Sprintf("%T %v", v, v))
	}
}
