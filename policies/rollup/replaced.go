package rollup

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Replaced says in which clusters a revision replaces what left it, so that this may go from there. What takes the
// place of an object is not known: it may be anything that the revision holds. The zero value is all clusters: a
// revision that is for no cluster replaces nothing.
type Replaced struct {
	// nowhere says that something may yet come to any cluster.
	nowhere bool
	// partly are the objects that do not stand in all their clusters: each with those in which it does, and its
	// replicas there, which are anyNumber for what has none.
	partly []map[string]int32
}

// anyNumber of replicas is enough.
const anyNumber = -1

// Add counts an object that no policy carries, and whether it stands.
func (r *Replaced) Add(stands bool) { r.nowhere = r.nowhere || !stands }

// AddPart counts an object that a policy carries.
func (r *Replaced) AddPart(p Part) {
	r.Add(p.State == Healthy)
	stands := map[string]int32{}
	for _, c := range p.Clusters {
		switch {
		case c.State != Healthy:
		case c.Replicas == 0:
			stands[c.Name] = anyNumber
		default:
			stands[c.Name] = c.Replicas
		}
	}
	if len(stands) < len(p.Clusters) {
		r.partly = append(r.partly, stands)
	}
}

// And returns the clusters in which both replace all.
func (r Replaced) And(other Replaced) Replaced {
	return Replaced{nowhere: r.nowhere || other.nowhere, partly: slices.Concat(r.partly, other.partly)}
}

// In returns those of the clusters that something which left is in that may let go of it: whatever does not stand
// everywhere does so there, with as many replicas. One that is to be elsewhere alone may be what takes its place.
func (r Replaced) In(clusters []workv1alpha2.TargetCluster) []string {
	if r.nowhere {
		return nil
	}
	var names []string
	for _, target := range clusters {
		if !slices.ContainsFunc(r.partly, func(stands map[string]int32) bool {
			n, there := stands[target.Name]
			return !there || n != anyNumber && n < target.Replicas
		}) {
			names = append(names, target.Name)
		}
	}
	return names
}

// AsApplied is the part judged by whether its clusters hold it, and not by how it fares there: that it is applied
// is all that is asked.
func (p Part) AsApplied() Part {
	p.Clusters = slices.Clone(p.Clusters)
	for i := range p.Clusters {
		if c := &p.Clusters[i]; c.Applied {
			c.State, c.Reason = Healthy, ""
		} else if c.State == Healthy {
			c.State, c.Reason = Progressing, notApplied
		}
	}
	return p
}
