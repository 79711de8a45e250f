package failover

import (
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Defaults of a Breaker.
const (
	DefaultShare  = 1.0 / 3
	DefaultWindow = 5 * time.Minute
)

// fewest is how many clusters must be lost at once for us to be suspected.
const fewest = 2

// Breaker says when the loss of clusters is rather that of our own sight: when more than a
// share of the fleet is lost within one window, and two at least, nothing is moved off
// those until they are back or somebody confirms the loss. The zero value has the defaults.
type Breaker struct {
	// Share of the clusters, from 0 to 1. Zero means DefaultShare; 1 and more never
	// suspects.
	Share float64
	// Window is how far apart losses count as one. Zero means DefaultWindow.
	Window time.Duration
}

// Losses are the clusters that were lost at once.
type Losses struct {
	// Clusters that are suspected not to be lost, sorted by name; nil for none.
	Clusters []string
	// Of is how many clusters there are.
	Of int
}

// Suspected reports whether a cluster is one of them.
func (l Losses) Suspected(cluster string) bool {
	_, found := slices.BinarySearch(l.Clusters, cluster)
	return found
}

// String is "3 of 5 clusters were lost at once: east, north, west".
func (l Losses) String() string {
	return strconv.Itoa(len(l.Clusters)) + " of " + strconv.Itoa(l.Of) + " clusters were lost at once: " + strings.Join(l.Clusters, ", ")
}

// Losses returns the clusters that were lost at once, if they are too many.
func (b Breaker) Losses(fleet Fleet) Losses {
	type loss struct {
		name string
		at   time.Time
	}
	var lost []loss
	out := Losses{}
	fleet.Each(func(c *clusterv1alpha1.Cluster) bool {
		if c.DeletionTimestamp == nil {
			out.Of++
		}
		if c.DeletionTimestamp == nil && isLost(c) && !confirmed(c) {
			lost = append(lost, loss{c.Name, readiness(c).LastTransitionTime.Time})
		}
		return true
	})
	slices.SortFunc(lost, func(a, b loss) int { return a.at.Compare(b.at) })
	suspected := map[string]bool{}
	for first, last := 0, 0; last < len(lost); last++ {
		for lost[last].at.Sub(lost[first].at) > b.window() {
			first++
		}
		if n := last - first + 1; n >= fewest && float64(n) > b.share()*float64(out.Of) {
			for _, l := range lost[first : last+1] {
				suspected[l.name] = true
			}
		}
	}
	for name := range suspected {
		out.Clusters = append(out.Clusters, name)
	}
	slices.Sort(out.Clusters)
	return out
}

// lazily returns what asks once, and only if it is asked.
func (b Breaker) lazily(fleet Fleet) func() Losses {
	var known *Losses
	return func() Losses {
		if known == nil {
			l := b.Losses(fleet)
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

func (b Breaker) window() time.Duration {
	if b.Window == 0 {
		return DefaultWindow
	}
	return b.Window
}

// confirmed reports whether somebody said of this loss of a cluster that it is one: the
// annotation is of later than the loss.
func confirmed(c *clusterv1alpha1.Cluster) bool {
	at, err := time.Parse(time.RFC3339, c.Annotations[clusterv1alpha1.ConfirmLostAnnotation])
	return err == nil && !at.Before(readiness(c).LastTransitionTime.Time)
}
