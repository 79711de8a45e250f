package rollup

import "slices"

// OverridesPending is the reason for a cluster whose objects were made with overrides that have changed since.
const OverridesPending = "its overrides have changed, and are not applied yet"

// Lagging returns the part of a template whose latest version waits for the reason why: its clusters have what was
// asked for before. With an empty reason the part stays as it is.
func (p Part) Lagging(why string) Part {
	if why == "" || p.State != Healthy {
		return p
	}
	p.State, p.Reason = Progressing, why
	p.Clusters, p.Former = nil, p.Clusters
	return p
}

// Outdating returns the part with the clusters for which outdated is true marked as such: they do not have what is
// asked for, and are Progressing unless they are worse already.
func (p Part) Outdating(outdated func(cluster string) bool) Part {
	p.Clusters = slices.Clone(p.Clusters)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if !outdated(c.Name) {
			continue
		}
		if c.Applied, c.Outdated = false, true; c.State == Healthy {
			c.State, c.Reason = Progressing, OverridesPending
		}
	}
	return p
}
