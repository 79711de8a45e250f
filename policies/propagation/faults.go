package propagation

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// ClusterFaultsAnnotation is, on a binding, why clusters of its placement have no
// Work: an override cannot be applied, or asks for more than a quota leaves. A
// cluster that has a Work has its fault in the Work's FaultAnnotation. See
// ClusterFaults.
const ClusterFaultsAnnotation = "propagation.flotilla.io/cluster-faults"

// mostFaults is how many different faults are recorded; the others are reported
// by Events only.
const mostFaults = 8

// HeldBack begins the fault of a cluster that gets no copy, as the version that others run cannot be had and a newer one must not be sent.
const HeldBack = "the template's latest edit is held back"

// ClusterFaults are why clusters have no Work, by cluster.
type ClusterFaults map[string]string

// clusterFault is one entry of the annotation: a fault and the clusters that have
// it.
type clusterFault struct {
	Fault    string   `json:"fault"`
	Clusters []string `json:"clusters"`
}

// ClusterFaultsOf returns the faults that a binding has; nil where it has none,
// or they cannot be decoded.
func ClusterFaultsOf(b metav1.Object) ClusterFaults {
	text := b.GetAnnotations()[ClusterFaultsAnnotation]
	if text == "" {
		return nil
	}
	var all []clusterFault
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	out := ClusterFaults{}
	for _, f := range all {
		for _, cluster := range f.Clusters {
			out[cluster] = f.Fault
		}
	}
	return out
}

// Text returns the value of the annotation; empty for no faults. Each fault is
// cut to MaxFault bytes, and clusters with the same fault are one entry, so that
// equal faults have equal texts.
func (f ClusterFaults) Text() string {
	byFault := map[string][]string{}
	for _, cluster := range slices.Sorted(maps.Keys(f)) {
		text := excerpt.Bytes(f[cluster], MaxFault)
		byFault[text] = append(byFault[text], cluster)
	}
	all := make([]clusterFault, 0, len(byFault))
	for text, clusters := range byFault {
		all = append(all, clusterFault{text, clusters})
	}
	slices.SortFunc(all, func(a, b clusterFault) int { return cmp.Compare(a.Clusters[0], b.Clusters[0]) })
	if len(all) > mostFaults {
		rest := clusterFault{Fault: "see the Events of its binding"}
		for _, f := range all[mostFaults:] {
			rest.Clusters = append(rest.Clusters, f.Clusters...)
		}
		slices.Sort(rest.Clusters)
		all = append(all[:mostFaults:mostFaults], rest)
	}
	if len(all) == 0 {
		return ""
	}
	data, err := json.Marshal(all)
	if err != nil {
		return "" // cannot happen: strings always encode
	}
	return string(data)
}
