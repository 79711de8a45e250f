package writecache

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// timeout is how long a write may stay unseen by the cache before it is taken
// for undone.
const timeout = 10 * time.Second

// remembered is how long an object's end is remembered. The answer to a write may take as long as a request, and be recorded after the
// cache has shown that the object is gone.
const remembered = time.Minute

// Cache remembers what was written until the informer's cache shows it. It is safe for use
// by several goroutines. Objects that go in or come out are shared: copy before
// changing them.
type Cache[T client.Object] struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	swept   time.Time
	wrote   map[client.ObjectKey]entry[T]
	deleted map[types.UID]time.Time
	gone    map[types.UID]time.Time
}

type entry[T client.Object] struct {
	obj T
	at  time.Time
}

// New returns an empty Cache.
func New[T client.Object](clk clock.PassiveClock) *Cache[T] {
	return &Cache[T]{clock: clk, swept: clk.Now(), wrote: map[client.ObjectKey]entry[T]{}, deleted: map[types.UID]time.Time{}, gone: map[types.UID]time.Time{}}
}

// Wrote records obj as the server returned it from a create, update or patch. It does nothing if the cache has shown
// that obj is gone since: no event would end that entry.
func (c *Cache[T]) Wrote(obj T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, gone := c.gone[obj.GetUID()]; gone {
		return
	}
	c.wrote[client.ObjectKeyFromObject(obj)] = entry[T]{obj: obj, at: c.clock.Now()}
	c.sweep()
}

// Deleted records that the server accepted what ends obj: its deletion, or the
// removal of the finalizer that held it.
func (c *Cache[T]) Deleted(obj T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted[obj.GetUID()] = c.clock.Now()
	c.sweep()
}

// Ended reports whether Deleted was called for obj a moment ago.
func (c *Cache[T]) Ended(obj T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.deleted[obj.GetUID()]
	return ok && c.clock.Since(at) <= timeout
}

// Leaving reports whether obj is being deleted: it says so itself, or the server
// has accepted its deletion a moment ago.
func (c *Cache[T]) Leaving(obj T) bool {
	return obj.GetDeletionTimestamp() != nil || c.Ended(obj)
}

// sweep drops what is too old, now and then.
func (c *Cache[T]) sweep() {
	now := c.clock.Now()
	if now.Sub(c.swept) < timeout {
		return
	}
	c.swept = now
	maps.DeleteFunc(c.wrote, func(_ client.ObjectKey, w entry[T]) bool { return now.Sub(w.at) > timeout })
	maps.DeleteFunc(c.deleted, func(_ types.UID, at time.Time) bool { return now.Sub(at) > timeout })
	maps.DeleteFunc(c.gone, func(_ types.UID, at time.Time) bool { return now.Sub(at) > remembered })
}

// Latest returns the newer of what the cache has under key and what was
// written there, which of one version is the latter: a write by which an object ends has none of
// its own. Cached is only read where found is true.
func (c *Cache[T]) Latest(key client.ObjectKey, cached T, found bool) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.wrote[key]
	if !ok {
		return cached, found
	}
	has, wrote := "", w.obj.GetResourceVersion()
	if found {
		has = cached.GetResourceVersion()
	}
	if c.clock.Since(w.at) > timeout || found && has != wrote && !Older(has, wrote) {
		delete(c.wrote, key)
		return cached, found
	}
	return w.obj, true
}

// Observed records that the cache now has obj. It returns true where obj is
// exactly what was written, so that nothing new has been learned.
func (c *Cache[T]) Observed(obj T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	w, ok := c.wrote[key]
	if !ok || Older(obj.GetResourceVersion(), w.obj.GetResourceVersion()) {
		return false
	}
	delete(c.wrote, key)
	return obj.GetResourceVersion() == w.obj.GetResourceVersion()
}

// Gone records that the cache has seen obj deleted. What was written under its key to a later object of another UID stays.
func (c *Cache[T]) Gone(obj client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uid := obj.GetUID(); uid != "" {
		c.gone[uid] = c.clock.Now()
	}
	key := client.ObjectKeyFromObject(obj)
	if w, ok := c.wrote[key]; ok && w.obj.GetUID() == obj.GetUID() {
		delete(c.wrote, key)
	}
	c.sweep()
}

// Forget drops what was written under key.
func (c *Cache[T]) Forget(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.wrote, key)
}

// Unseen returns the objects written that the cache has not shown yet and that
// match.
func (c *Cache[T]) Unseen(match func(T) bool) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []T
	for _, w := range c.wrote {
		if match(w.obj) && c.clock.Since(w.at) <= timeout {
			out = append(out, w.obj)
		}
	}
	return out
}

// Older reports whether the resource version a was certainly made before b. Both
// must come from objects of one kind and server; what cannot be compared is not
// older.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
