package rollup

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Replaced records in which clusters a revision is complete, so that objects that left the revision may be removed
// there. Which object replaces which is not known: any object of the revision may be the replacement. The zero
// value is for a revision without objects in clusters, which lets all clusters go.
type Replaced struct {
	// nowhere means that nothing may be removed anywhere yet: an object of the
	// revision is not in place, and may be the replacement in any cluster.
	nowhere bool
	// partly has an entry for each object that is not healthy in all of its clusters: its replicas in those in
	// which it is, or anyNumber for a kind without replicas.
	partly []map[string]int32
}

// anyNumber means that any number of replicas is enough.
const anyNumber = -1

// Add counts an object that no policy carries, and whether it is in place.
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

// And returns the clusters in which both revisions are complete.
func (r Replaced) And(other Replaced) Replaced {
	return Replaced{nowhere: r.nowhere || other.nowhere, partly: slices.Concat(r.partly, other.partly)}
}

// In returns those of the clusters of an object that left the revision from which it may be removed: every object
// of the revision that is not healthy in all of its clusters is healthy there, with at least as many replicas. Such
// an object blocks the removal also where it is placed in other clusters only, as it may be the replacement.
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

// AsApplied returns the part judged only by whether its clusters have applied it,
// where that is all that is asked for.
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
