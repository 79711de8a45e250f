package rollup

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Place is the state of a revision in one cluster.
type Place struct {
	Cluster string
	// State of the worst object there.
	State State
	// Reason names that object and what is wrong with it; where all are healthy, it names an object that stays with
	// its data although it is not wanted, or is empty.
	Reason string
}

// Places returns the state of a revision in each cluster that should have objects
// of it, or still has some that left it, or keeps data of it, sorted from the
// worst to the best and then by name. The order of parts does not matter.
func Places(parts []Part) []Place {
	worst := map[string]finding{}
	note := func(f finding) {
		if before, known := worst[f.cluster]; !known || byWeight(f, before) < 0 {
			worst[f.cluster] = f
		}
	}
	for _, p := range parts {
		for _, c := range p.Clusters {
			note(findingOf(p, c))
		}
		for _, c := range p.Leaving {
			note(finding{c.State, c.Name, p.Object, c.Reason})
		}
	}
	places := make(map[string]Place, len(worst))
	for cluster, f := range worst {
		places[cluster] = Place{Cluster: cluster, State: f.state, Reason: f.there()}
	}
	keptIn(places, parts)
	out := slices.AppendSeq(make([]Place, 0, len(places)), maps.Values(places))
	slices.SortFunc(out, func(a, b Place) int { return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(a.Cluster, b.Cluster)) })
	return out
}

// there returns the finding's text for where the cluster is known.
func (f finding) there() string {
	switch {
	case f.state == Healthy:
		return ""
	case f.state == Unknown:
		return f.reason
	case f.state != Failed && strings.HasPrefix(f.reason, "not ready"):
		return "waits for " + f.object + strings.TrimPrefix(f.reason, "not ready")
	default:
		return f.object + ": " + f.reason
	}
}
