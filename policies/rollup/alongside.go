package rollup

import "slices"

// Alongside returns the parts of Namespaces, with only the clusters that other parts go to. Where nothing else goes
// anywhere, they keep all. Namespaces are in every cluster, also where nothing of the Kustomization runs, so that
// they must not count there.
func Alongside(namespaces, others []Part) []Part {
	goes := map[string]bool{}
	for i := range others {
		for _, c := range others[i].Clusters {
			goes[c.Name] = true
		}
	}
	if len(goes) == 0 {
		return namespaces
	}
	var out []Part
	for _, p := range namespaces {
		p.Clusters = slices.DeleteFunc(p.Clusters, func(c ClusterPart) bool { return !goes[c.Name] })
		if len(p.Clusters) > 0 {
			out = append(out, p)
		}
	}
	return out
}
