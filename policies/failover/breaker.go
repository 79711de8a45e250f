package failover

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Defaults of a Breaker.
const (
	DefaultShare  = 1.0 / 3
	DefaultWindow = 5 * time.Minute
	DefaultSkew   = 20 * time.Second
)

// fewest is how many clusters must be lost at once for us to be suspected.
const fewest = 2

// Breaker says when a loss of clusters is more likely a fault of our own connection: when more than a
// share of the fleet is lost within one window, and two at least, nothing is moved off
// those until they are back or somebody confirms the loss. The zero value has the defaults.
type Breaker struct {
	// Share of the clusters, from 0 to 1. Zero means DefaultShare; 1 and more never
	// suspects.
	Share float64
	// Window is how far apart losses count as one. Zero means DefaultWindow.
	Window time.Duration
	// Skew is how far apart it may be noticed that clusters are lost which are lost at the same moment: what is moved off
	// the first of them before that is moved although many were. Zero means DefaultSkew.
	Skew time.Duration
}

// Losses are the clusters that were lost at once.
type Losses struct {
	// Clusters that are suspected not to be lost, sorted by name; nil for none.
	Clusters []string
	// Lost is how many are, or were a moment ago, lost with them, and Of how many there are.
	Lost, Of int
	// Until is when less is suspected by time alone; zero where that is not so.
	Until time.Time
}

// Suspected reports whether a cluster is one of them.
func (l Losses) Suspected(cluster string) bool {
	_, found := slices.BinarySearch(l.Clusters, cluster)
	return found
}

// String is "3 of 5 clusters were lost at once: east, north, west", and where only some of them are suspected "3 of 5
// clusters were lost at once, east among them".
func (l Losses) String() string {
	out := strconv.Itoa(l.Lost) + " of " + strconv.Itoa(l.Of) + " clusters were lost at once"
	names := strings.Join(l.Clusters, ", ")
	if len(l.Clusters) < l.Lost {
		return out + ", " + names + " among them"
	}
	return out + ": " + names
}

// Suspected reports whether it stands on a cluster that it is lost with so many others that nothing is moved off it.
func Suspected(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected)
}

// loss is a cluster that is lost, or was until a moment ago.
type loss struct {
	name string
	// at is when it was lost, in the way in which it is, and back when it was ready again; zero where it is not.
	at, back time.Time
	// suspected is since when it is suspected, zero where it was not until now: it may have been lost in several ways since.
	suspected time.Time
	// confirmed says that somebody knows that it is lost.
	confirmed bool
}

// sawBack reports whether another one came back since l was lost, of one that was suspected.
func (l loss) sawBack(other loss) bool {
	if l.suspected.IsZero() {
		return false
	}
	return other.back.After(l.at) || !other.back.Before(l.suspected) && !other.back.IsZero()
}

// suspectedSince is since when it stands on a cluster that it is suspected; zero where it does not.
func suspectedSince(c *clusterv1alpha1.Cluster) time.Time {
	if s := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected); s != nil && Suspected(c) {
		return s.LastTransitionTime.Time
	}
	return time.Time{}
}

// Losses returns the clusters that were lost at once, if they are too many. One whose loss was confirmed counts, and is
// not suspected itself. So does one that is back, for the length of the window, against those that were suspected before:
// of those that were lost together, some are heard of sooner than others.
func (b Breaker) Losses(fleet Fleet, now time.Time) Losses {
	var all []loss
	out := Losses{}
	fleet.Each(func(c *clusterv1alpha1.Cluster) bool {
		if c.DeletionTimestamp != nil {
			return true
		}
		out.Of++
		if ready := readiness(c); ready != nil {
			switch at := ready.LastTransitionTime.Time; {
			case Lost(c), ready.Reason == clusterv1alpha1.ClusterAnswersAgainReason:
				all = append(all, loss{name: c.Name, at: at, confirmed: confirmed(c), suspected: suspectedSince(c)})
			case isReady(c) && now.Sub(at) < b.window():
				all = append(all, loss{name: c.Name, back: at})
			}
		}
		return true
	})
	for _, l := range all {
		if l.back.IsZero() && !l.confirmed {
			b.suspect(&out, l, all)
		}
	}
	slices.Sort(out.Clusters)
	return out
}

// suspect adds a loss if too many were lost with it.
func (b Breaker) suspect(out *Losses, of loss, all []loss) {
	standing := 0
	var returned []time.Time
	for _, l := range all {
		switch {
		case l.back.IsZero() && l.at.Sub(of.at).Abs() <= b.window():
			standing++
		case of.sawBack(l):
			returned = append(returned, l.back)
		}
	}
	enough := func(n int) bool { return n >= fewest && float64(n) > b.share()*float64(out.Of) }
	if !enough(standing + len(returned)) {
		return
	}
	out.Clusters = append(out.Clusters, of.name)
	out.Lost = max(out.Lost, standing+len(returned))
	if enough(standing) {
		return
	}
	slices.SortFunc(returned, time.Time.Compare)
	for n := len(returned); n > 0 && enough(standing+n); n-- { // those that were back first are forgotten first
		if until := returned[len(returned)-n].Add(b.window()); !enough(standing + n - 1) {
			out.Until = Earlier(out.Until, until)
		}
	}
}

// lazily returns what asks once, and only if it is asked.
func (b Breaker) lazily(fleet Fleet, now time.Time) func() Losses {
	var known *Losses
	return func() Losses {
		if known == nil {
			l := b.Losses(fleet, now)
			known = &l
		}
		return *known
	}
}

func (b Breaker) share() float64 {
	if b.Share == 0 {
		return DefaultShare
	}
	return b.Share
}

func (b Breaker) skew() time.Duration {
	if b.Skew == 0 {
		return DefaultSkew
	}
	return b.Skew
}

func (b Breaker) window() time.Duration {
	if b.Window == 0 {
		return DefaultWindow
	}
	return b.Window
}

// confirmed reports whether somebody confirmed this loss of a cluster: the
// annotation is of later than the loss.
func confirmed(c *clusterv1alpha1.Cluster) bool {
	at, err := time.Parse(time.RFC3339, c.Annotations[clusterv1alpha1.ConfirmLostAnnotation])
	return err == nil && !at.Before(readiness(c).LastTransitionTime.Time)
}
