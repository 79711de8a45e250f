package failover

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// defaultToleration is how long an application may be unhealthy where its policy
// has no tolerationSeconds.
const defaultToleration = 300 * time.Second

// Moves counts how often an application was moved because it failed. The zero
// value is for never.
type Moves struct {
	// Count is the number of moves, each soon after the one before.
	Count int `json:"count"`
	// At is when the last one was.
	At metav1.Time `json:"at"`
}

const (
	// mostDoubled is how often the tolerated time is doubled at most.
	mostDoubled = 6
	// calm is how long an application has to be healthy until earlier moves no
	// longer count, as a multiple of the tolerated time.
	calm = 10
)

// tolerates returns how long an application may be unhealthy after these moves:
// twice as long with each move that was soon after another one, as the fault is
// then the application's and not the cluster's.
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

// Next returns the moves with another one, which is made now.
func (m Moves) Next(tolerated time.Duration, now time.Time) Moves {
	if m.tolerates(tolerated, now) == tolerated {
		m.Count = 0
	}
	return Moves{Count: m.Count + 1, At: metav1.NewTime(now.UTC().Truncate(time.Second))}
}

// Tolerated returns how long an application may be unhealthy according to its
// policy, which has to have spec.failover.application.
func Tolerated(spec *workv1alpha2.ResourceBindingSpec) time.Duration {
	if s := spec.Failover.Application.DecisionConditions.TolerationSeconds; s != nil {
		return time.Duration(max(*s, 0)) * time.Second
	}
	return defaultToleration
}

// Application returns the clusters in which a template has been unhealthy for
// longer than its policy tolerates, given its moves before, and when that changes
// by time alone; zero where it does not. The health in a cluster that is not
// ready does not count, nor that in one which the template has left.
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
			ends[item.ClusterName] = item.UnhealthySince.Add(tolerated + time.Second) // it was cut to a whole second
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

// Earlier returns the earlier of two times; a zero time stands for none.
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

// Both joins what is due for two reasons, and when that changes. For a cluster
// that is in both, the first cause counts.
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
