package placement

import (
	"slices"
	"strings"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// Snapshot is the member clusters at one moment. It never changes and may be
// shared; the zero value has no clusters.
type Snapshot struct {
	clusters []*framework.Cluster // sorted by name
}

// NewSnapshot prepares clusters. It keeps references to them: they must not be
// changed afterwards, as objects of a cache are not.
func NewSnapshot(clusters []*clusterv1alpha1.Cluster) Snapshot {
	return Snapshot{}.Renew(clusters)
}

func sorted(prepared []*framework.Cluster) Snapshot {
	slices.SortFunc(prepared, func(a, b *framework.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return Snapshot{clusters: prepared}
}

// Renew returns the snapshot of other clusters, and prepares only those that s
// does not have, or has in another version. Nothing is reserved in it.
func (s Snapshot) Renew(clusters []*clusterv1alpha1.Cluster) Snapshot {
	prepared := make([]*framework.Cluster, len(clusters))
	for i, c := range clusters {
		at, ok := slices.BinarySearchFunc(s.clusters, c.Name, nameCompare)
		if ok && sameVersion(s.clusters[at].Cluster, c) && s.clusters[at].Reserved == nil {
			prepared[i] = s.clusters[at]
			continue
		}
		prepared[i] = framework.NewCluster(c)
	}
	return sorted(prepared)
}

// sameVersion reports whether a and b are one object, stored once.
func sameVersion(a, b *clusterv1alpha1.Cluster) bool {
	return a == b || a.UID != "" && a.UID == b.UID && a.ResourceVersion != "" && a.ResourceVersion == b.ResourceVersion
}

func nameCompare(c *framework.Cluster, name string) int { return strings.Compare(c.Name, name) }

// Len returns the number of clusters.
func (s Snapshot) Len() int { return len(s.clusters) }

// Cluster returns the cluster of the name, and false if there is none.
func (s Snapshot) Cluster(name string) (*clusterv1alpha1.Cluster, bool) {
	i, ok := slices.BinarySearchFunc(s.clusters, name, nameCompare)
	if !ok {
		return nil, false
	}
	return s.clusters[i].Cluster, true
}

// Each calls f with every cluster, sorted by name, until f returns false.
func (s Snapshot) Each(f func(*clusterv1alpha1.Cluster) bool) {
	for _, c := range s.clusters {
		if !f(c.Cluster) {
			return
		}
	}
}

// Names returns the names of all clusters, sorted.
func (s Snapshot) Names() []string {
	names := make([]string, len(s.clusters))
	for i, c := range s.clusters {
		names[i] = c.Name
	}
	return names
}
