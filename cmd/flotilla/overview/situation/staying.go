package situation

import (
	"cmp"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/sorting"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// staying is a template with a copy in a cluster that it should leave, and the message about that.
type staying struct {
	id            inventory.ID
	what, message string
}

const (
	cannotMove  = "it must be moved, and cannot be"
	cannotDrain = "a drain waits for it, and it cannot be moved"
)

// together returns the templates that stay for the same reason.
func together(all []staying) map[staying][]inventory.ID {
	by := map[staying][]inventory.ID{}
	for _, s := range all {
		stay := staying{what: s.what, message: s.message}
		by[stay] = append(by[stay], s.id)
	}
	for _, ids := range by {
		slices.SortFunc(ids, func(a, b inventory.ID) int {
			return cmp.Or(sorting.Turn(a)-sorting.Turn(b), cmp.Compare(wording.Title(a), wording.Title(b)))
		})
	}
	return by
}

// stayingNotes returns notes about what stays, such as because nothing else has room, one for each reason. It may be healthy,
// but would not survive the next failure.
func stayingNotes(all []staying) []Note {
	var out []Note
	for stay, ids := range together(all) {
		out = append(out, Note{
			Kind: ids[0].GroupKind.Kind, Namespace: ids[0].Namespace, Name: ids[0].Name,
			Message: stay.what + wording.Besides(ids) + ". " + stay.message, Next: wording.Explains(ids[0]),
		})
	}
	slices.SortFunc(out, func(a, b Note) int { return cmp.Compare(a.Message, b.Message) })
	return out
}

// undrained takes what stays in clusters that are drained off the asides, and returns problems about it, one for each
// reason: such a drain never ends by itself.
func (a *asides) undrained(clusters []Cluster) []Problem {
	var out []Problem
	for i := range clusters {
		if !clusters[i].Drained {
			continue // a drain that is over may still be in a message
		}
		name := clusters[i].Name
		var stuck []staying
		a.staying = slices.DeleteFunc(a.staying, func(s staying) bool {
			is := s.what == cannotMove && strings.Contains(s.message, " "+name+" (untolerated taint {"+clusterv1alpha1.TaintClusterDrain)
			if is {
				stuck = append(stuck, staying{s.id, cannotDrain, s.message})
			}
			return is
		})
		for stay, ids := range together(stuck) {
			out = append(out, Problem{
				State: Failed, Group: ids[0].GroupKind.Group, Kind: ids[0].GroupKind.Kind, Namespace: ids[0].Namespace, Name: ids[0].Name, Clusters: []string{name},
				Message: stay.what + wording.Besides(ids) + ". " + stay.message,
				Next:    "let its policy mean another cluster with room, or end the drain: flotilla uncordon " + name + "; " + wording.Explains(ids[0]),
			})
		}
	}
	return out
}
