package comparison

import (
	"slices"
	"strings"
)

// Only returns the part that is about these clusters, and of risks those that are about no single cluster as well.
func (c Comparison) Only(clusters []string) Comparison {
	within := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(clusters, name) })
	}
	out := Comparison{APIVersion: c.APIVersion, Kind: c.Kind, WhatIf: c.WhatIf, Supposed: c.Supposed, Notes: c.Notes}
	for _, r := range c.Risks {
		if all := len(r.Clusters) == 0; all {
			out.Risks = append(out.Risks, r)
		} else if r.Clusters = within(r.Clusters); len(r.Clusters) > 0 {
			out.Risks = append(out.Risks, r)
		}
	}
	for _, p := range c.Placements {
		p.Shifts = slices.DeleteFunc(slices.Clone(p.Shifts), func(s Shift) bool { return !slices.Contains(clusters, s.Cluster) })
		if len(p.Shifts) > 0 {
			out.Placements = append(out.Placements, p)
		}
	}
	for _, change := range c.Changes {
		if change.Clusters = within(change.Clusters); len(change.Clusters) > 0 {
			out.Changes = append(out.Changes, change)
		}
	}
	for _, r := range c.Restarts {
		all := len(r.Clusters)
		if r.Clusters = within(r.Clusters); len(r.Clusters) > 0 {
			if len(r.Clusters) < all {
				r.Pods = nil // they are counted in all of them together
			}
			out.Restarts = append(out.Restarts, r)
		}
	}
	for _, h := range c.Held {
		if h.Clusters = within(h.Clusters); len(h.Clusters) > 0 {
			out.Held = append(out.Held, h)
		}
	}
	out.Summary = summaryOf(&out)
	return out
}

// OfKustomization returns the part that is about what a Kustomization, NAMESPACE/NAME, applies. Risks of policies stay,
// whoever applies these.
func (c Comparison) OfKustomization(name string) Comparison {
	out := Comparison{APIVersion: c.APIVersion, Kind: c.Kind, WhatIf: c.WhatIf, Supposed: c.Supposed, Notes: c.Notes}
	for _, r := range c.Risks {
		others := strings.HasPrefix(r.Policy, kustomizationTitle) && r.Policy != kustomizationTitle+name
		if r.Object != nil && r.Object.Kustomization == name || r.Object == nil && !others {
			out.Risks = append(out.Risks, r)
		}
	}
	out.Placements = of(c.Placements, func(p Placement) string { return p.Kustomization }, name)
	out.Changes = of(c.Changes, func(p Change) string { return p.Kustomization }, name)
	out.Restarts = of(c.Restarts, func(p Restart) string { return p.Kustomization }, name)
	out.Held = of(c.Held, func(p Held) string { return p.Kustomization }, name)
	out.Summary = summaryOf(&out)
	return out
}

func of[T any](all []T, owner func(T) string, name string) []T {
	var out []T
	for _, one := range all {
		if owner(one) == name {
			out = append(out, one)
		}
	}
	return out
}
