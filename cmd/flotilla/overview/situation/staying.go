package situation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/sorting"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// staying is a template with a copy in a cluster that it should leave, and the message about that.
type staying struct {
	id            inventory.ID
	what, message string
}

const cannotMove = "it must be moved, and cannot be"

// stayingNotes returns notes about what stays, such as because nothing else has room, one for each reason. It may be healthy,
// but would not survive the next failure.
func stayingNotes(all []staying) []Note {
	by := map[staying][]inventory.ID{}
	for _, s := range all {
		stay := staying{what: s.what, message: s.message}
		by[stay] = append(by[stay], s.id)
	}
	var out []Note
	for stay, ids := range by {
		slices.SortFunc(ids, func(a, b inventory.ID) int {
			return cmp.Or(sorting.Turn(a)-sorting.Turn(b), cmp.Compare(titleOf(a), titleOf(b)))
		})
		of := ids[0]
		out = append(out, Note{
			Kind: of.GroupKind.Kind, Namespace: of.Namespace, Name: of.Name,
			Message: stay.what + besides(ids) + ". " + stay.message,
			Next:    "flotilla explain " + strings.ToLower(of.GroupKind.Kind) + "/" + of.Name + inNamespace(of.Namespace),
		})
	}
	slices.SortFunc(out, func(a, b Note) int { return cmp.Compare(a.Message, b.Message) })
	return out
}
