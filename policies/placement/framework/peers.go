package framework

// Peers are the other bindings of a namespace that share a group of workload
// affinity with the one that is placed, as the clusters that each of them runs
// on; those that run nowhere yet are left out. The zero value has none.
type Peers struct {
	// Affinity has the bindings to be together with.
	Affinity [][]string
	// AntiAffinity has the bindings to be apart from.
	AntiAffinity [][]string
}

// PeerIndex is Peers made ready to be asked about many clusters. The zero value
// has no peers.
type PeerIndex struct {
	affinity map[string]int // how many bindings to be with run on a cluster
	bindings int            // how many there are
	anti     map[string]struct{}
}

// Index makes p ready.
func (p Peers) Index() PeerIndex {
	x := PeerIndex{bindings: len(p.Affinity)}
	if len(p.Affinity) > 0 {
		x.affinity = map[string]int{}
	}
	for n, clusters := range p.Affinity {
		for _, c := range clusters {
			if x.affinity[c] == n { // not where one is listed twice
				x.affinity[c]++
			}
		}
	}
	if len(p.AntiAffinity) > 0 {
		x.anti = map[string]struct{}{}
	}
	for _, clusters := range p.AntiAffinity {
		for _, c := range clusters {
			x.anti[c] = struct{}{}
		}
	}
	return x
}

// Together reports whether every binding to be with runs on the cluster.
func (x PeerIndex) Together(cluster string) bool { return x.affinity[cluster] == x.bindings }

// Apart reports whether no binding to be apart from runs on the cluster.
func (x PeerIndex) Apart(cluster string) bool {
	_, there := x.anti[cluster]
	return !there
}
