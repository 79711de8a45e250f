package rollup

import (
	"fmt"
	"slices"
	"strings"
)

// keeping is a volume claim that stays in a cluster.
type keeping struct{ cluster, object string }

// keepings returns the keepings of all parts, sorted.
func keepings(parts []Part) []keeping {
	var out []keeping
	for _, p := range parts {
		for _, c := range p.Kept {
			out = append(out, keeping{c, p.Object})
		}
	}
	slices.SortFunc(out, func(a, b keeping) int {
		if a.cluster != b.cluster {
			return strings.Compare(a.cluster, b.cluster)
		}
		return strings.Compare(a.object, b.object)
	})
	return out
}

// Kept describes the first object that stays in a cluster with its data although it is not wanted there, how to
// remove it, and how many more there are; empty for none.
func Kept(parts []Part) string {
	list := keepings(parts)
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%s stays in %s%s: flotilla prune --cluster %s removes it", claimOf(list[0].object), list[0].cluster, more(len(list)-1), list[0].cluster)
}

// NotTakenUp is the beginning of Unheeded's text.
const NotTakenUp = "not taken up: "

// Unheeded describes the first request of a policy that is not followed,
// contested ones before others, and how many more there are; empty for none.
func Unheeded(parts []Part) string {
	var first *Part
	count := 0
	for i, p := range parts {
		if p.Unheeded == "" {
			continue
		}
		if count++; first == nil || p.Contested && !first.Contested || p.Contested == first.Contested && p.Object < first.Object {
			first = &parts[i]
		}
	}
	if first == nil {
		return ""
	}
	return NotTakenUp + first.Object + more(count-1) + " " + first.Unheeded
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// keptOf returns what Kept added to the description that Revision made for a success; empty for nothing.
func keptOf(description string) string {
	if _, kept, found := strings.Cut(description, "; claim "); found {
		kept, _, _ = strings.Cut(kept, "; "+NotTakenUp)
		return "claim " + kept
	}
	return ""
}

// claimOf shortens the kind of a volume claim, as commit statuses are short.
func claimOf(object string) string {
	return strings.Replace(object, "PersistentVolumeClaim ", "claim ", 1)
}

// keptIn adds what stays in clusters to their places: to those where nothing is
// wrong, and to new places for clusters that should have nothing.
func keptIn(places map[string]Place, parts []Part) {
	first, counts := map[string]string{}, map[string]int{}
	for _, k := range keepings(parts) {
		if counts[k.cluster]++; counts[k.cluster] == 1 {
			first[k.cluster] = claimOf(k.object)
		}
	}
	for cluster, n := range counts {
		if place, known := places[cluster]; !known || place.State == Healthy {
			places[cluster] = Place{Cluster: cluster, State: Healthy, Reason: first[cluster] + " stays, with its data" + more(n-1)}
		}
	}
}
