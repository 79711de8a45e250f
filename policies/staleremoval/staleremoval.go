package staleremoval

import (
	"slices"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// Copy is what is known of a copy in a cluster that the template is placed in.
type Copy struct {
	// Healthy says that the copy was healthy when it was reported last, and that its cluster is not known to be lost.
	Healthy bool
	// After is how long to wait until its cluster has answered since the absence; zero if it has. It counts for a healthy copy only.
	After time.Duration
}

// Verdict is whether a copy goes.
type Verdict struct {
	// Goes says that it may. If it is false, and Awaits is empty, the copy stays.
	Goes bool
	// Awaits is the cluster whose answer is due first of those that are said to have a healthy copy, and After is when.
	Awaits string
	After  time.Duration
	// In are the clusters that the template is placed in, where the copy stays or waits.
	In []string
}

// Judge judges the copy of a binding in a cluster. That it goes was decided when others were healthy, which may be gone by now. What somebody
// has asked for is done all the same: that the template is pruned there, that it leaves before it starts elsewhere, or that it is placed
// nowhere. The caller gives the copies elsewhere, of which none is looked at beyond the first that is enough.
func Judge(b workv1alpha2.Binding, cluster string, of func(target string) Copy) Verdict {
	spec := plan.SpecOf(b)
	if slices.Contains(plan.PrunedFrom(b), cluster) || slices.Contains(plan.LeaveFirst(spec), cluster) {
		return Verdict{Goes: true}
	}
	var out Verdict
	for _, target := range plan.Targets(spec) {
		out.In = append(out.In, target.Name)
		c := of(target.Name)
		switch {
		case !c.Healthy:
		case c.After == 0:
			return Verdict{Goes: true}
		case out.Awaits == "" || c.After < out.After:
			out.Awaits, out.After = target.Name, c.After
		}
	}
	out.Goes = len(out.In) == 0
	return out
}
