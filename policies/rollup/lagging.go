package rollup

import "slices"

// OverridesPending is the text of a cluster that holds a template as overrides made it that have changed since.
const OverridesPending = "its overrides have changed, and are not applied yet"

// Lagging is the part of a template that waits for what why says: what stands in its clusters is what was asked for
// before.
func (p Part) Lagging(why string) Part {
	if why == "" || p.State != Healthy {
		return p
	}
	p.State, p.Reason = Progressing, why
	p.Clusters, p.Former = nil, p.Clusters
	return p
}

// Outdating is the part with those of its clusters not healthy, and not known to hold what is asked for, that outdated
// names and in which nothing worse is found.
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
