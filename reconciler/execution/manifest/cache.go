package manifest

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// Cache keeps the manifests of Works. Use NewCache. It is safe for use by several
// goroutines.
type Cache struct {
	mu     sync.Mutex
	parsed map[client.ObjectKey]parsed
	// former holds the manifests that are no longer in their Work.
	former map[client.ObjectKey]former
}

// parsed are the manifests of one generation of a Work.
type parsed struct {
	uid        types.UID
	generation int64
	manifests  []Manifest
}

// former are manifests that a Work had and has no longer.
type former struct {
	uid       types.UID
	manifests []Manifest
}

// NewCache returns a Cache that has read nothing.
func NewCache() *Cache {
	return &Cache{parsed: map[client.ObjectKey]parsed{}, former: map[client.ObjectKey]former{}}
}

// Of returns the Work's manifests.
func (c *Cache) Of(work *workv1alpha1.Work) []Manifest {
	key := client.ObjectKeyFromObject(work)
	c.mu.Lock()
	known, ok := c.parsed[key]
	c.mu.Unlock()
	if ok && known.uid == work.UID && known.generation == work.Generation {
		return known.manifests
	}
	out := make([]Manifest, len(work.Spec.Workload.Manifests))
	for i := range out {
		out[i] = Parse(i, work.Spec.Workload.Manifests[i].Raw)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.parsed[key]; was.uid == work.UID && was.generation < work.Generation {
		c.outdate(key, was, out)
	}
	c.parsed[key] = parsed{uid: work.UID, generation: work.Generation, manifests: out}
	return out
}

// An object that no manifest of its Work names any more is removed from the member. The Work's
// status lists what was sent, and an entry stays until its object is gone, so that
// this survives a restart and a member that is away. What was sent and did not get
// into the status before its manifest was dropped is remembered here.

// Leftovers returns the objects that the Work had sent and that none of its
// manifests, asked, names any more.
func (c *Cache) Leftovers(work *workv1alpha1.Work, asked []Manifest) []Manifest {
	var out []Manifest
	add := func(m Manifest) {
		if !slices.ContainsFunc(asked, m.Same) && !slices.ContainsFunc(out, m.Same) {
			out = append(out, m)
		}
	}
	for i := range work.Status.ManifestStatuses {
		add(formerly(&work.Status.ManifestStatuses[i].Identifier))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.former[client.ObjectKeyFromObject(work)]; f.uid == work.UID {
		for _, m := range f.manifests {
			add(m)
		}
	}
	return out
}

// outdate remembers the manifests of one generation that the next does not have.
// The caller has the lock.
func (c *Cache) outdate(key client.ObjectKey, was parsed, now []Manifest) {
	f := c.former[key]
	if f.uid != was.uid {
		f = former{uid: was.uid}
	}
	for _, m := range was.manifests {
		if m.Err == nil && !slices.ContainsFunc(now, m.Same) && !slices.ContainsFunc(f.manifests, m.Same) {
			f.manifests = append(f.manifests, m)
		}
	}
	if len(f.manifests) > 0 {
		c.former[key] = f
	}
}

// Removed forgets the former manifests of a Work, as their objects are gone.
func (c *Cache) Removed(work client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.former, work)
}

// Forget drops what is kept of a Work that is gone.
func (c *Cache) Forget(work client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.parsed, work)
	delete(c.former, work)
}
