package echo

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a write may stay unseen by the cache before it is taken
// for undone.
const patience = 10 * time.Second

// Echo remembers what was written until the cache shows it. It is safe for use
// by several goroutines. Objects that go in or come out are shared: copy before
// changing them.
type Echo[T client.Object] struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	swept   time.Time
	wrote   map[client.ObjectKey]entry[T]
	deleted map[types.UID]time.Time
}

type entry[T client.Object] struct {
	obj T
	at  time.Time
}

// New returns an empty Echo.
func New[T client.Object](c clock.PassiveClock) *Echo[T] {
	return &Echo[T]{clock: c, swept: c.Now(), wrote: map[client.ObjectKey]entry[T]{}, deleted: map[types.UID]time.Time{}}
}

// Wrote records obj as the server returned it from a create, update or patch.
func (e *Echo[T]) Wrote(obj T) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote[client.ObjectKeyFromObject(obj)] = entry[T]{obj: obj, at: e.clock.Now()}
	e.sweep()
}

// Deleted records that the server accepted what ends obj: its deletion, or the
// removal of the finalizer that held it.
func (e *Echo[T]) Deleted(obj T) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deleted[obj.GetUID()] = e.clock.Now()
	e.sweep()
}

// Ended reports whether Deleted was called for obj a moment ago.
func (e *Echo[T]) Ended(obj T) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.deleted[obj.GetUID()]
	return ok && e.clock.Since(at) <= patience
}

// Leaving reports whether obj is being deleted: it says so itself, or the server
// has accepted its deletion a moment ago.
func (e *Echo[T]) Leaving(obj T) bool {
	return obj.GetDeletionTimestamp() != nil || e.Ended(obj)
}

// sweep drops what is too old, now and then.
func (e *Echo[T]) sweep() {
	now := e.clock.Now()
	if now.Sub(e.swept) < patience {
		return
	}
	e.swept = now
	maps.DeleteFunc(e.wrote, func(_ client.ObjectKey, w entry[T]) bool { return now.Sub(w.at) > patience })
	maps.DeleteFunc(e.deleted, func(_ types.UID, at time.Time) bool { return now.Sub(at) > patience })
}

// Latest returns the newer of what the cache has under key and what was
// written there. Cached is only read where found is true.
func (e *Echo[T]) Latest(key client.ObjectKey, cached T, found bool) (T, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.wrote[key]
	if !ok {
		return cached, found
	}
	if e.clock.Since(w.at) > patience || (found && !Older(cached.GetResourceVersion(), w.obj.GetResourceVersion())) {
		delete(e.wrote, key)
		return cached, found
	}
	return w.obj, true
}

// Observed tells that the cache now has obj. It returns true where obj is
// exactly what was written, so that nothing new has been learned.
func (e *Echo[T]) Observed(obj T) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	w, ok := e.wrote[key]
	if !ok || Older(obj.GetResourceVersion(), w.obj.GetResourceVersion()) {
		return false
	}
	delete(e.wrote, key)
	return obj.GetResourceVersion() == w.obj.GetResourceVersion()
}

// Gone tells that the cache has seen the object under key deleted.
func (e *Echo[T]) Gone(key client.ObjectKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.wrote, key)
}

// Unseen returns the objects written that the cache has not shown yet and that
// match.
func (e *Echo[T]) Unseen(match func(T) bool) []T {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []T
	for _, w := range e.wrote {
		if match(w.obj) && e.clock.Since(w.at) <= patience {
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
