package failover

import (
	"slices"
	"strconv"
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
	// calm is how long an application has to be without a fault until earlier moves
	// no longer count, as a multiple of the tolerated time; and leastCalm at least:
	// it may take that long for an image to be pulled, or a lost cluster to be
	// noticed, however little is tolerated.
	calm      = 10
	leastCalm = 10 * time.Minute
)

// tolerates returns how long an application may be unhealthy after these moves:
// twice as long with each move that was soon after another one, as the fault is
// then the application's and not the cluster's.
func (m Moves) tolerates(tolerated time.Duration) time.Duration {
	if m.Count == 0 {
		return tolerated
	}
	return times(max(tolerated, time.Second), 1<<min(m.Count, mostDoubled))
}

// over reports whether these moves no longer count for an application that has
// been unhealthy since then: it was well for long before. heard is since when its
// cluster has been heard of: what was not known does not count as well.
func (m Moves) over(tolerated time.Duration, since, heard time.Time) bool {
	return m.Count > 0 && since.Sub(Later(m.At.Time, heard)) > max(times(m.tolerates(tolerated), calm), leastCalm)
}

// end returns until when it is tolerated that an application is unhealthy in c, as
// it has been since then, and whether earlier moves no longer count. Where they
// do it is the doubled time after the last one at least, since when ever it has
// been unhealthy: it may have run in several clusters.
func (m Moves) end(tolerated time.Duration, since time.Time, c *clusterv1alpha1.Cluster, now time.Time) (at time.Time, anew bool) {
	if m.over(tolerated, since, readiness(c).LastTransitionTime.Time) {
		m = Moves{}
	}
	if m.Count > 0 && !m.At.After(now) { // else the clock was set back since
		since = Later(since, m.At.Time)
	}
	return since.Add(m.tolerates(tolerated) + time.Second), m.Count == 0 // since was cut to a whole second
}

// Moves returns the moves of an application when it leaves clusters now: those
// before, and another one if it failed in one of these.
func (d Due) Moves(before *Moves, leaves []string, now time.Time) *Moves {
	failed := slices.DeleteFunc(slices.Clone(leaves), func(name string) bool { return !d[name].Application })
	if len(failed) == 0 {
		return before
	}
	out := Moves{Count: 1, At: metav1.NewTime(now.UTC().Truncate(time.Second))}
	if before != nil && slices.ContainsFunc(failed, func(name string) bool { return !d[name].Anew }) {
		out.Count += before.Count
	}
	return &out
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
	ill := illIn(b)
	if len(ill) == 0 {
		return nil, time.Time{}
	}
	var out Due
	var next time.Time
	tolerated := Tolerated(b.BindingSpec())
	fleet.Each(func(c *clusterv1alpha1.Cluster) bool {
		since, is := ill[c.Name]
		if !is || !isReady(c) || !Movable(c) {
			return true
		}
		at, anew := before.end(tolerated, since, c, now)
		if at.After(now) {
			next = Earlier(next, at)
			return true
		}
		if out == nil {
			out = Due{}
		}
		out[c.Name] = Cause{Why: "an application that was unhealthy for more than " + tolerated.String(), Application: true, Anew: anew}
		return true
	})
	return out, next
}

// Fails returns whether, and when, a template will be moved away from c because it
// is unhealthy there; false where it will not, or is about to be.
func Fails(c *clusterv1alpha1.Cluster, b workv1alpha2.Binding, before Moves, now time.Time) (Leaving, bool) {
	since, ill := illIn(b)[c.Name]
	if !ill || !isReady(c) || !Movable(c) {
		return Leaving{}, false
	}
	at, anew := before.end(Tolerated(b.BindingSpec()), since, c, now)
	why := "unhealthy since " + clockTime(since, now)
	if !anew {
		why += before.blame()
	}
	return Leaving{Cluster: c.Name, At: &metav1.Time{Time: at}, Why: why, Fails: true}, true
}

// blame says what moves that did not help say about an application that is unhealthy again.
func (m Moves) blame() string {
	moves := "a move"
	if m.Count > 1 {
		moves = strconv.Itoa(m.Count) + " moves"
	}
	return ", after " + moves + " for the same reason: the fault may be the application's own"
}

// illIn returns since when a template is unhealthy in clusters that it is placed
// in, where its policy moves it for that.
func illIn(b workv1alpha2.Binding) map[string]time.Time {
	spec := b.BindingSpec()
	if spec.Failover == nil || spec.Failover.Application == nil || !spec.PropagateDeps {
		return nil
	}
	var out map[string]time.Time
	for i := range b.BindingStatus().AggregatedStatus {
		item := &b.BindingStatus().AggregatedStatus[i]
		runs := slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == item.ClusterName })
		if item.Health != workv1alpha2.ResourceUnhealthy || item.UnhealthySince == nil || !runs {
			continue
		}
		if out == nil {
			out = map[string]time.Time{}
		}
		out[item.ClusterName] = item.UnhealthySince.Time
	}
	return out
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
