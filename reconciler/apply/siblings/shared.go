package siblings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// mostShared is how many shared objects a text names.
const mostShared = 5

// SharedError returns the error for a revision of the Kustomization own with objects, at least one, that others hold as
// well. within is the only namespace whose Kustomizations it may name; empty for all.
func SharedError(shared []Shared, own client.ObjectKey, within, revision string) error {
	shared = slices.Clone(shared)
	slices.SortFunc(shared, func(a, b Shared) int {
		return cmp.Or(strings.Compare(inventory.Describe(a.ID), inventory.Describe(b.ID)), strings.Compare(a.With.String(), b.With.String()))
	})
	shared = slices.CompactFunc(shared, func(a, b Shared) bool { return a.ID == b.ID })
	first := Name(shared[0].With, within)
	return fmt.Errorf("%s stands in Kustomization %s and in %s%s; until then revision %s is not applied here",
		inventory.Describe(shared[0].ID), first, own, besides(shared[1:], first, within), revision)
}

// besides returns the rest of the text: the other objects, each with the Kustomization that holds it if that differs
// from first, and what to do.
func besides(others []Shared, first, within string) string {
	var names []string
	for _, s := range others[:min(len(others), mostShared-1)] {
		name := inventory.Describe(s.ID)
		if with := Name(s.With, within); with != first {
			name += " (in Kustomization " + with + ")"
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if more := len(others) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch len(others) {
	case 0:
		return ": remove it from one of them"
	case 1:
		return ", and so does " + text + ": remove each from one of the Kustomizations"
	default:
		return ", and so do " + text + ": remove each from one of the Kustomizations"
	}
}

// Names reports whether a message of SharedError names an object.
func Names(message string, id inventory.ID) bool {
	objects, _, refuses := strings.Cut(message, ": remove ")
	return refuses && strings.Contains(objects, " stands in Kustomization ") &&
		slices.ContainsFunc(strings.Fields(objects), func(word string) bool { return strings.TrimRight(word, ",") == inventory.Describe(id) })
}
