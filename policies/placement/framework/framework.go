package framework

import (
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Plugin is anything that takes part in choosing clusters.
type Plugin interface {
	// Name is the name that flags and explanations use.
	Name() string
}

// Filter refuses clusters.
type Filter interface {
	Plugin
	// Filter returns why c cannot be chosen, and "" where it can. The text
	// counts clusters: "cluster(s) had no quay".
	Filter(req *Request, c *Cluster) (reason string)
}

// Score prefers clusters.
type Score interface {
	Plugin
	// Score returns how much c is preferred, from 0 to 100.
	Score(req *Request, c *Cluster) int64
}

// MaxScore is the highest score that one plugin gives.
const MaxScore = 100

// Request is what one attempt to place a binding asks for.
type Request struct {
	// Spec of the binding.
	Spec *workv1alpha2.ResourceBindingSpec
	// Placement is Spec's, never nil.
	Placement *policyv1alpha1.Placement
	// Affinity in force: the only one, or the term being tried.
	Affinity selector.Clusters
	// Overflow affinities of that term, in order; only for workloads.
	Overflow []selector.Clusters
	// Peers are the bindings that Spec's affinity groups are about.
	Peers PeerIndex
	// Barred are the clusters that Spec is to be moved off, or not to be moved to, and why.
	Barred map[string]string
	// Returns are clusters that Spec may be moved back to, although an eviction task is about them.
	Returns map[string]bool
	// Home are clusters that Spec is brought back to.
	Home []string

	targets map[string]struct{} // of Spec, once there are many
}

// manyTargets is from how many on they are looked up.
const manyTargets = 8

// Ready prepares the request for being asked about many clusters. Spec must not
// change afterwards.
func (r *Request) Ready() {
	if len(r.Spec.Clusters) < manyTargets {
		return
	}
	r.targets = make(map[string]struct{}, len(r.Spec.Clusters))
	for i := range r.Spec.Clusters {
		r.targets[r.Spec.Clusters[i].Name] = struct{}{}
	}
}

// Targets reports whether the binding is placed on the cluster already.
func (r *Request) Targets(cluster string) bool {
	if r.targets != nil {
		_, ok := r.targets[cluster]
		return ok
	}
	for i := range r.Spec.Clusters {
		if r.Spec.Clusters[i].Name == cluster {
			return true
		}
	}
	return false
}
