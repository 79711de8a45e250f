// Package sorting puts objects in the order in which people look for them.
//
// In go the names of objects; they come out with workloads first, and numbers in names by value.
package sorting

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Objects sorts objects with numbers in names by value: web-2 comes before web-10.
func Objects(ids []inventory.ID) {
	slices.SortFunc(ids, func(a, b inventory.ID) int {
		return cmp.Or(Turn(a)-Turn(b), natural(a.Namespace, b.Namespace), natural(a.Name, b.Name), cmp.Compare(a.GroupKind.String(), b.GroupKind.String()))
	})
}

// Turn sorts workloads before other kinds, such as the ConfigMaps that they read.
func Turn(id inventory.ID) int {
	if inventory.IsWorkload(id) {
		return 0
	}
	return 1
}

// natural compares two names, with the numbers in them by value.
func natural(a, b string) int {
	for x, y := a, b; x != "" && y != ""; {
		p, q := part(x), part(y)
		x, y = x[len(p):], y[len(q):]
		order := strings.Compare(p, q)
		if isDigit(rune(p[0])) && isDigit(rune(q[0])) {
			m, n := strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
			order = cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n))
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// part returns the beginning of a text: its digits, or everything up to the first digit.
func part(text string) string {
	digits := isDigit(rune(text[0]))
	if i := strings.IndexFunc(text, func(r rune) bool { return isDigit(r) != digits }); i > 0 {
		return text[:i]
	}
	return text
}

func isDigit(r rune) bool { return r <= unicode.MaxASCII && unicode.IsDigit(r) }
