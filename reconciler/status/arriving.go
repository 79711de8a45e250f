package status

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// arrivals tracks which clusters take up Works that are new to them. It is safe for use by several goroutines.
type arrivals struct {
	clock  clock.PassiveClock
	within time.Duration // for how long a cluster counts as at work after it took up one

	mu   sync.Mutex
	last map[string]time.Time // when one was taken up, by namespace of Works; only of those at work
}

func newArrivals(o Options) *arrivals {
	return &arrivals{clock: o.Clock, within: o.MaxWait, last: map[string]time.Time{}}
}

// observe records a Work of which its cluster reports for the first time.
func (a *arrivals) observe(was, is *workv1alpha1.Work) {
	if applied(was) || !applied(is) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	maps.DeleteFunc(a.last, func(_ string, at time.Time) bool { return now.Sub(at) >= a.within })
	a.last[is.Namespace] = now
}

// applied reports whether a cluster has reported what became of a Work.
func applied(work *workv1alpha1.Work) bool {
	return meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied) != nil
}

// atWork reports whether all of the clusters are taking up Works.
func (a *arrivals) atWork(clusters []string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	return !slices.ContainsFunc(clusters, func(cluster string) bool {
		at, known := a.last[workv1alpha2.ExecutionNamespace(cluster)]
		return !known || now.Sub(at) >= a.within
	})
}

// awaited reports whether a binding only lacks what clusters have yet to report. Those that take up others
// at this moment are about to: to report of each binding that it waits would cost a write for each.
func (a *arrivals) awaited(s *state) bool {
	lacks := unreported(plan.SpecOf(s.binding), s.items)
	return len(lacks) > 0 && a.atWork(lacks)
}

// unreported returns the clusters that have yet to report for the first time, sorted; none where something else is missing,
// too.
func unreported(spec *workv1alpha2.ResourceBindingSpec, items []workv1alpha2.AggregatedStatusItem) []string {
	lacks := plan.Keeps(spec)
	for i := range items {
		at, wanted := slices.BinarySearch(lacks, items[i].ClusterName)
		switch {
		case !wanted:
			return nil
		case items[i].Applied:
			lacks = slices.Delete(lacks, at, at+1)
		case items[i].AppliedMessage != "":
			return nil
		}
	}
	return lacks
}
