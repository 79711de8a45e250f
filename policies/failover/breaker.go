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

// fewest is how many clusters have to be lost at once to suspect the control
// plane's own connection.
const fewest = 2

// Breaker decides when a loss of clusters is more likely a fault of the control
// plane's own connection: if more than a share of the fleet is lost within one
// window, and at least two clusters are, nothing is moved away from those until
// they are back or somebody confirms the loss. The zero value has the defaults.
type Breaker struct {
	// Share of the clusters, from 0 to 1. Zero means DefaultShare; with 1 and
	// more, no loss is suspected.
	Share float64
	// Window is how far apart losses may be to count as one. Zero means
	// DefaultWindow.
	Window time.Duration
	// Skew is how far apart losses that happen at the same moment may be noticed.
	// Nothing is moved before that, as the first loss to be noticed would
	// otherwise seem to be a single one. Zero means DefaultSkew.
	Skew time.Duration
}

// Losses are the clusters that were lost at once.
type Losses struct {
	// Clusters whose loss is suspected, sorted by name; nil for none.
	Clusters []string
	// Lost is how many clusters were lost with them, and Back how many others came
	// back a moment ago, which count as well; Of is the size of the fleet.
	Lost, Back, Of int
	// Until is when that changes by time alone; zero where it does not.
	Until time.Time
}

// Suspected reports whether a cluster is one of them.
func (l Losses) Suspected(cluster string) bool {
	_, found := slices.BinarySearch(l.Clusters, cluster)
	return found
}

// String returns a text such as "3 of 5 clusters were lost at once: east, north,
// west" or, where only some of them are suspected, "3 of 5 clusters were lost at
// once, east among them"; where others count as they are back, ", and 2 came back a moment ago".
func (l Losses) String() string {
	out := strconv.Itoa(l.Lost) + " of " + strconv.Itoa(l.Of) + " clusters were lost at once"
	if l.Back > 0 {
		out += ", and " + strconv.Itoa(l.Back) + " came back a moment ago"
	}
	names := strings.Join(l.Clusters, ", ")
	if len(l.Clusters) < l.Lost {
		return out + ", " + names + " among them"
	}
	return out + ": " + names
}

// Suspected reports whether the conditions of a cluster show that it is suspected
// to be lost with too many others, so that nothing is moved away from it.
func Suspected(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected)
}

// loss is a cluster that is lost, or was until a moment ago.
type loss struct {
	name string
	// at is when it was lost, by its present condition, and back when it became
	// ready again; the other one is zero.
	at, back time.Time
	// suspected is since when the loss has been suspected; zero where it has not.
	// It may be earlier than at, as the condition's reason may have changed since.
	suspected time.Time
	// confirmed means that somebody has confirmed the loss.
	confirmed bool
}

// sawBack reports whether l is suspected, and other has come back since l was
// lost, or suspected.
func (l loss) sawBack(other loss) bool {
	if l.suspected.IsZero() {
		return false
	}
	return other.back.After(l.at) || !other.back.Before(l.suspected) && !other.back.IsZero()
}

// suspectedSince returns since when the conditions of a cluster have shown a
// suspicion; zero where they do not.
func suspectedSince(c *clusterv1alpha1.Cluster) time.Time {
	if s := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected); s != nil && Suspected(c) {
		return s.LastTransitionTime.Time
	}
	return time.Time{}
}

// Losses returns the clusters that were lost at once, if they are too many. A
// cluster whose loss was confirmed counts, but is not suspected itself. A cluster
// that has come back counts for the length of the window against those that were
// suspected before, since clusters that were lost together do not all come back
// at the same moment.
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

// suspect adds a loss to out if too many were lost with it.
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
	if standing+len(returned) > out.Lost+out.Back {
		out.Lost, out.Back = standing, len(returned)
	}
	if enough(standing) {
		return
	}
	slices.SortFunc(returned, time.Time.Compare)
	for n := len(returned); n > 0 && enough(standing+n); n-- { // the first that came back
		if until := returned[len(returned)-n].Add(b.window()); !enough(standing + n - 1) {
			out.Until = Earlier(out.Until, until)
		}
	}
}

// lazily returns a function that computes the losses once, when it is first
// called.
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

// confirmed reports whether somebody has confirmed this loss of the cluster: the
// annotation's time is not before the loss.
func confirmed(c *clusterv1alpha1.Cluster) bool {
	at, err := time.Parse(time.RFC3339, c.Annotations[clusterv1alpha1.ConfirmLostAnnotation])
	return err == nil && !at.Before(readiness(c).LastTransitionTime.Time)
}
