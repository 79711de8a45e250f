package failover

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// defaultToleration is how long an application may be unhealthy, where its policy does not say.
const defaultToleration = 300 * time.Second

// Moves are those of an application because it failed. The zero value is none.
type Moves struct {
	// Count is how many there were, each soon after the one before.
	Count int `json:"count"`
	// At is when the last one was.
	At metav1.Time `json:"at"`
}

const (
	// mostDoubled is how often the time is doubled at most for which an application may be unhealthy.
	mostDoubled = 6
	// calm is how many times as long as that it has to be well, for what was before to be forgotten.
	calm = 10
)

// tolerates is for how long an application may be unhealthy that was moved so often, each time soon after it was moved
// last: twice as long each time, as it is the application then, and not the cluster.
func (m Moves) tolerates(tolerated time.Duration, since time.Time) time.Duration {
	if m.Count == 0 {
		return tolerated
	}
	doubled := max(tolerated, time.Second) << min(m.Count, mostDoubled)
	if since.Sub(m.At.Time) > calm*doubled {
		return tolerated
	}
	return doubled
}

// Next are the moves with one more, which is made now.
func (m Moves) Next(tolerated time.Duration, now time.Time) Moves {
	if m.tolerates(tolerated, now) == tolerated {
		m.Count = 0
	}
	return Moves{Count: m.Count + 1, At: metav1.NewTime(now.UTC().Truncate(time.Second))}
}

// Tolerated is for how long an application of the policy may be unhealthy.
func Tolerated(spec *workv1alpha2.ResourceBindingSpec) time.Duration {
	if s := spec.Failover.Application.DecisionConditions.TolerationSeconds; s != nil {
		return time.Duration(max(*s, 0)) * time.Second
	}
	return defaultToleration
}

// Application returns the clusters in which a template has been unhealthy for longer than its
// policy tolerates, given how it was moved before, and when there will be another one by time alone; zero where there will not.
// What is reported of a cluster that is not ready does not count, nor what is reported of one
// that the template has left.
func Application(fleet Fleet, b workv1alpha2.Binding, before Moves, now time.Time) (Due, time.Time) {
	spec := b.BindingSpec()
	if spec.Failover == nil || spec.Failover.Application == nil || !spec.PropagateDeps {
		return nil, time.Time{}
	}
	runs := map[string]bool{}
	for i := range spec.Clusters {
		runs[spec.Clusters[i].Name] = true
	}
	ends := map[string]time.Time{}
	for i := range b.BindingStatus().AggregatedStatus {
		item := &b.BindingStatus().AggregatedStatus[i]
		if item.Health == workv1alpha2.ResourceUnhealthy && item.UnhealthySince != nil && runs[item.ClusterName] {
			tolerated := before.tolerates(Tolerated(spec), item.UnhealthySince.Time)
			ends[item.ClusterName] = item.UnhealthySince.Add(tolerated + time.Second) // more than that: the time is of a whole second
		}
	}
	if len(ends) == 0 {
		return nil, time.Time{}
	}
	var out Due
	var next time.Time
	fleet.Each(func(c *clusterv1alpha1.Cluster) bool {
		at, ill := ends[c.Name]
		switch {
		case !ill || !isReady(c) || !Movable(c):
		case at.After(now):
			next = Earlier(next, at)
		default:
			if out == nil {
				out = Due{}
			}
			out[c.Name] = Cause{Why: "an application that was unhealthy for more than " + Tolerated(spec).String(), Application: true}
		}
		return true
	})
	return out, next
}

// Earlier returns the earlier of two times; zero is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Both joins what is due for two reasons, and when that changes. The first counts where both
// are about one cluster.
func Both(a, b Due, nextA, nextB time.Time) (Due, time.Time) {
	if len(a) == 0 {
		return b, Earlier(nextA, nextB)
	}
	out := Due{}
	for _, due := range []Due{b, a} {
		for name, cause := range due {
			out[name] = cause
		}
	}
	return out, Earlier(nextA, nextB)
}
