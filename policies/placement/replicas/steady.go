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
	gain := func(i int) int32 { return out[i].Replicas - before[i] }
	for lacks > 0 {
		most, next := 0, int32(0) // who gains most, and what those gain at most who gain less
		for i := range out {
			if gain(i) >= gain(most) {
				most = i
			}
		}
		level := int32(0) // how many gain as much
		for i := range out {
			switch {
			case gain(i) == gain(most):
				level++
			default:
				next = max(next, gain(i))
			}
		}
		if gain(most) <= 0 {
			return is // there are to be fewer in all
		}
		if each := min(lacks/level, gain(most)-next); each > 0 { // all of these at once: there may be very many
			top := gain(most)
			for i := range out {
				if gain(i) == top {
					out[i].Replicas -= each
				}
			}
			lacks -= each * level
			continue
		}
		out[most].Replicas--
		lacks--
	}
	i := -1
	return slices.DeleteFunc(out, func(t workv1alpha2.TargetCluster) bool { i++; return t.Replicas == 0 && is[i].Replicas > 0 })
}
