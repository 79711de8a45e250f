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

// stuck returns problems about what stays in clusters that it should leave, one for each reason: neither a drain nor a taint ends by itself,
// and in a lost cluster it is not known to run. What a drain waits for is told with how to end that.
func (a *asides) stuck(clusters []Cluster) []Problem {
	drained := map[string][]string{}
	for i, s := range a.staying {
		for _, c := range clusters {
			// A drain that is over may still be in a message.
			if c.Drained && strings.Contains(s.message, " "+c.Name+" (untolerated taint {"+clusterv1alpha1.TaintClusterDrain) {
				a.staying[i].what, drained[s.message] = cannotDrain, []string{c.Name}
			}
		}
	}
	var out []Problem
	for stay, ids := range together(a.staying) {
		p := Problem{
			State: Failed, Group: ids[0].GroupKind.Group, Kind: ids[0].GroupKind.Kind, Namespace: ids[0].Namespace, Name: ids[0].Name, Clusters: drained[stay.message],
			Message: stay.what + wording.Besides(ids) + ". " + stay.message, Next: wording.Explains(ids[0]),
		}
		if len(p.Clusters) > 0 {
			p.Next = "let its policy mean another cluster with room, or end the drain: flotilla uncordon " + p.Clusters[0] + "; " + p.Next
		}
		out = append(out, p)
	}
	return out
}
