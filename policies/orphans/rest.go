package orphans

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/policies/volumes"
)

// separator is between the count and the names in a Message.
const separator = " that no Work names: "

// Rest returns what a Message says of how many there are, and of their names, without some of the claims among them, which are told
// elsewhere; empty where nothing is left. A text that Message did not make is returned as far as its first semicolon.
func Rest(message string, without []types.NamespacedName) string {
	text, _, _ := strings.Cut(message, ";")
	count, names, known := strings.Cut(text, separator)
	number, _, _ := strings.Cut(count, " ")
	n, err := strconv.Atoi(number)
	if !known || err != nil || len(without) == 0 {
		return text
	}
	if n -= len(without); n <= 0 {
		return ""
	}
	names, _, _ = strings.Cut(names, " and ")
	named := slices.DeleteFunc(strings.Split(names, ", "), func(title string) bool {
		return slices.ContainsFunc(without, func(claim types.NamespacedName) bool {
			o := Object{ID: ID{Kind: volumes.Kind(), NamespacedName: claim}}
			return title == o.Title()
		})
	})
	objects, more := "objects", ""
	if n == 1 {
		objects = "object"
	}
	switch {
	case len(named) == 0:
		return fmt.Sprintf("%d more %s that no Work names", n, objects)
	case n > len(named):
		more = fmt.Sprintf(" and %d more", n-len(named))
	}
	return fmt.Sprintf("%d %s%s%s%s", n, objects, separator, strings.Join(named, ", "), more)
}
