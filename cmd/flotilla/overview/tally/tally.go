// Package tally counts the clusters of many objects.
//
// In go where each of them is to be, and where it is as it should be; out comes in how many clusters any of them is to be,
// and in how many all of these are as they should be. It knows no objects, and talks to nobody.
package tally

// Clusters are those of many objects. The zero value is of none.
type Clusters struct {
	missing map[string]int // by cluster: objects that are not as they should be there
}

// Add adds an object by the clusters that it is to be in, and those of them in which it is as it should be.
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

// Count returns how many clusters there are, and in how many of them all is as it should be.
func (c *Clusters) Count() (ready, total int) {
	for _, n := range c.missing {
		if n == 0 {
			ready++
		}
	}
	return ready, len(c.missing)
}
