package explain

import "slices"

// Only returns the explanation with only what is about the given clusters, or about none in particular.
func (e Explanation) Only(clusters []string) Explanation {
	named := func(name string) bool { return slices.Contains(clusters, name) }
	if e.Placement != nil {
		p := *e.Placement
		p.Terms = slices.Clone(p.Terms)
		for i := range p.Terms {
			p.Terms[i].Clusters = keep(p.Terms[i].Clusters, func(v Verdict) bool { return named(v.Cluster) })
		}
		e.Placement = &p
	}
	if e.Overrides != nil {
		e.Overrides = &Overrides{Clusters: keep(e.Overrides.Clusters, func(c ClusterOverrides) bool { return named(c.Cluster) })}
		if len(e.Overrides.Clusters) == 0 {
			e.Overrides = nil
		}
	}
	if e.Delivery != nil {
		d := *e.Delivery
		d.Clusters = keep(d.Clusters, func(c Delivered) bool { return named(c.Cluster) })
		e.Delivery = &d
	}
	e.Problems = keep(e.Problems, func(p Problem) bool { return len(p.Clusters) == 0 || slices.ContainsFunc(p.Clusters, named) })
	return e
}

func keep[T any](all []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !wanted(v) })
}
