// Package readiness counts the clusters in which a set of objects is ready.
//
// In go, for each object, the clusters in which it is placed and those in which it is ready; out come the number of
// clusters with any of the objects, and the number of those in which all of their objects are ready. It does no I/O.
package readiness

// Clusters are the clusters of a set of objects. The zero value has none.
type Clusters struct {
	missing map[string]int // by cluster: objects that are not ready there
}

// Add adds an object by the clusters that it is placed in, and those of them in which it is ready.
func (c *Clusters) Add(in, ready []string) {
	if c.missing == nil {
		c.missing = map[string]int{}
	}
	for _, name := range in {
		c.missing[name]++
	}
	for _, name := range ready {
		c.missing[name]--
	}
}

// Count returns the number of clusters, and of those in which all objects are ready.
func (c *Clusters) Count() (ready, total int) {
	for _, n := range c.missing {
		if n == 0 {
			ready++
		}
	}
	return ready, len(c.missing)
}
