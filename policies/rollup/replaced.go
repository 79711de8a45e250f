package rollup

import (
	"maps"
	"slices"
)

// Replaced says in which clusters all of a revision stands, so that what left it may go from there. The zero
// value is all of them: a revision that is for no cluster replaces nothing.
type Replaced struct {
	// nowhere says that something may yet come to any cluster.
	nowhere bool
	// yet are the clusters that have yet to hold something, or of which nothing is heard.
	yet map[string]bool
}

// Add counts an object that no policy carries, and whether it stands.
func (r *Replaced) Add(stands bool) { r.nowhere = r.nowhere || !stands }

// AddPart counts an object that a policy carries.
func (r *Replaced) AddPart(p Part) {
	r.Add(p.State == Healthy)
	for _, c := range p.Clusters {
		r.except(c.Name, c.State != Healthy)
	}
}

// Except counts clusters of which nothing is heard.
func (r *Replaced) Except(silent Silences) {
	for cluster := range silent {
		r.except(cluster, true)
	}
}

// And returns the clusters in which all of both stands.
func (r Replaced) And(other Replaced) Replaced {
	out := Replaced{nowhere: r.nowhere || other.nowhere, yet: maps.Clone(r.yet)}
	for cluster := range other.yet {
		out.except(cluster, true)
	}
	return out
}

func (r *Replaced) except(cluster string, yet bool) {
	if !yet {
		return
	}
	if r.yet == nil {
		r.yet = map[string]bool{}
	}
	r.yet[cluster] = true
}

// In returns those of the clusters in which all stands.
func (r Replaced) In(clusters []string) []string {
	if r.nowhere {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c string) bool { return r.yet[c] })
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
