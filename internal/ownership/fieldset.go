package ownership

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// deepest is how many path elements one below the other a field set may have. Those
// of servers have some tens, and some of Set's operations look through all that is
// below at each of them.
const deepest = 1000

// setOf reads a field set of metadata.managedFields; what names nothing is left out.
// It is Set.FromJSON, which takes the square of its length: that one inserts in the
// order in which a member sends. Error: errIntricate.
func setOf(fields map[string]any) (*fieldpath.Set, error) { return setBelow(fields, deepest) }

func setBelow(fields map[string]any, depth int) (*fieldpath.Set, error) {
	if depth < 0 {
		return nil, errIntricate
	}
	type part struct {
		element fieldpath.PathElement
		below   map[string]any
	}
	parts := make([]part, 0, len(fields))
	for name, sub := range fields {
		if element, err := fieldpath.DeserializePathElement(name); err == nil {
			below, _ := sub.(map[string]any)
			parts = append(parts, part{element, below})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.element.Compare(b.element) })
	out := &fieldpath.Set{}
	var same []*fieldpath.Set // what is below one element: it may be written in several ways
	for i, p := range parts {
		below, err := setBelow(p.below, depth-1)
		if err != nil {
			return nil, err
		}
		if _, itself := p.below["."]; itself || below.Empty() {
			out.Members.Insert(p.element)
		}
		if !below.Empty() {
			same = append(same, below)
		}
		if last := i+1 == len(parts) || !p.element.Equals(parts[i+1].element); last && len(same) > 0 {
			*out.Children.Descend(p.element) = *union(same)
			same = nil
		}
	}
	return out, nil
}

// union returns what all of the sets name. It goes by halves: one after the other,
// each would cost as much as all before it.
func union(sets []*fieldpath.Set) *fieldpath.Set {
	switch len(sets) {
	case 0:
		return &fieldpath.Set{}
	case 1:
		return sets[0]
	}
	half := len(sets) / 2
	return union(sets[:half]).Union(union(sets[half:]))
}
