package decider

import (
	"encoding/json"
	"maps"
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// unit is what one unit of a workload is: a replica, or a set of components. It never
// changes.
type unit struct {
	// key is the same for all that are equal.
	key        string
	namespace  string
	components []workv1alpha2.Component
}

// unitOf returns the unit of what b stands for.
func unitOf(b workv1alpha2.Binding) *unit {
	spec := b.BindingSpec()
	out := &unit{namespace: b.GetNamespace(), components: spec.Components}
	if !placement.InSets(spec) {
		out.components = []workv1alpha2.Component{estimate.ComponentOf(spec.ReplicaRequirements)}
	}
	data, err := json.Marshal(out.components)
	if err != nil { // plain values always encode
		return out
	}
	out.key = out.namespace + "/" + string(data)
	return out
}

func (u *unit) equals(other *unit) bool {
	if u == nil || other == nil {
		return u == other
	}
	return u.key == other.key
}

// assumptions count how many of each unit were reserved and are not seen yet.
type assumptions struct {
	// kept says that an estimator uses them.
	kept bool
	// by cluster and the key of the unit
	by map[string]map[string]assumption
	// cached is what assumed returned, by cluster, until something changes there.
	cached map[string][]estimate.Assumed
}

type assumption struct {
	unit  *unit
	count int64
}

// move turns one share of a cluster into another.
func (p assumptions) move(cluster string, was, is share) {
	p.add(cluster, was.unit, -int64(was.units))
	p.add(cluster, is.unit, int64(is.units))
}

func (p assumptions) add(cluster string, u *unit, n int64) {
	if u == nil || n == 0 {
		return
	}
	delete(p.cached, cluster)
	there := p.by[cluster]
	if there == nil {
		there = map[string]assumption{}
		p.by[cluster] = there
	}
	is := assumption{unit: u, count: there[u.key].count + n}
	if there[u.key] = is; is.count == 0 {
		delete(there, u.key)
	}
	if len(there) == 0 {
		delete(p.by, cluster)
	}
}

// assumed returns what was reserved in the cluster and is not seen there yet, equal units
// together, in a stable order. It is shared: not to be changed.
func (r *reservations) assumed(cluster string) []estimate.Assumed {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cached, known := r.assumptions.cached[cluster]; known {
		return cached
	}
	there := r.assumptions.by[cluster]
	out := make([]estimate.Assumed, 0, len(there))
	for _, key := range slices.Sorted(maps.Keys(there)) {
		is := there[key]
		a := estimate.Assumed{Namespace: is.unit.namespace, Components: slices.Clone(is.unit.components)}
		for i := range a.Components {
			a.Components[i].Replicas = int32(min(int64(a.Components[i].Replicas)*is.count, 1<<31-1))
		}
		out = append(out, a)
	}
	r.assumptions.cached[cluster] = out
	return out
}
