package echo

import (
	"sync"
	"time"

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

	mu    sync.Mutex
	swept time.Time
	wrote map[client.ObjectKey]entry[T]
}

type entry[T client.Object] struct {
	obj T
	at  time.Time
}

// New returns an empty Echo.
func New[T client.Object](c clock.PassiveClock) *Echo[T] {
	return &Echo[T]{clock: c, swept: c.Now(), wrote: map[client.ObjectKey]entry[T]{}}
}

// Wrote records obj as the server returned it from a create, update or patch.
func (e *Echo[T]) Wrote(obj T) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	e.wrote[client.ObjectKeyFromObject(obj)] = entry[T]{obj: obj, at: now}
	if now.Sub(e.swept) < patience {
		return
	}
	e.swept = now
	for key, w := range e.wrote {
		if now.Sub(w.at) > patience {
			delete(e.wrote, key)
		}
	}
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

// Older says whether the resource version a was certainly made before b. Both
// must come from objects of one kind and server; what cannot be compared is not
// older.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
