package replicas

import (
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Steady returns a division in which no cluster that goes on has less than before: what is lacking
// for that is taken off those that would gain most, the last one of several. It has as many
// in all as is, and none that has nothing unless is had it.
//
// It is for what is moved while all goes well: what a cluster is to run less it runs less at once,
// and what another gains is there later.
func Steady(was, is []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	out, before := slices.Clone(is), make([]int32, len(is))
	var lacks int32
	for i := range out {
		for _, t := range was {
			if t.Name == out[i].Name {
				before[i] = t.Replicas
			}
		}
		if less := before[i] - out[i].Replicas; less > 0 {
			out[i].Replicas += less
			lacks += less
		}
	}
	for ; lacks > 0; lacks-- {
		most := 0
		for i := range out {
			if out[i].Replicas-before[i] >= out[most].Replicas-before[most] {
				most = i
			}
		}
		if out[most].Replicas == before[most] {
			return is // there are to be fewer in all
		}
		out[most].Replicas--
	}
	i := -1
	return slices.DeleteFunc(out, func(t workv1alpha2.TargetCluster) bool { i++; return t.Replicas == 0 && is[i].Replicas > 0 })
}
