package receiver

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hook is a Receiver that is ready.
type hook struct {
	key client.ObjectKey
	// uid and generation are those of the object that it was made from.
	uid        types.UID
	generation int64
	filters    filters
	checks     map[string]checks
}

// How much may be sent to one address: a push to many branches is one request for each.
const (
	perSecond = 5
	burst     = 20
)

// hooks are the Receivers that are ready, by the path of their address. It is for use by several goroutines.
type hooks struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	byPath map[string]hook
	paths  map[client.ObjectKey]string
	limits map[string]*rate.Limiter
}

func newHooks(c clock.PassiveClock) *hooks {
	return &hooks{clock: c, byPath: map[string]hook{}, paths: map[client.ObjectKey]string{}, limits: map[string]*rate.Limiter{}}
}

// put makes a Receiver reachable at a path, and at no other. It reports false if another one has the path.
func (h *hooks) put(path string, of hook) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paths[of.key] != path {
		h.forget(of.key)
	}
	if other, found := h.byPath[path]; found && other.key != of.key {
		return false
	}
	h.byPath[path], h.paths[of.key] = of, path
	if h.limits[path] == nil {
		h.limits[path] = rate.NewLimiter(perSecond, burst)
	}
	return true
}

// drop makes a Receiver unreachable.
func (h *hooks) drop(key client.ObjectKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(key)
}

func (h *hooks) forget(key client.ObjectKey) {
	if path, ok := h.paths[key]; ok {
		delete(h.byPath, path)
		delete(h.limits, path)
		delete(h.paths, key)
	}
}

// at returns the Receiver at a path, and false if there is none; and after which time it takes one more request, 0 for
// now.
func (h *hooks) at(path string) (of hook, found bool, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of, found = h.byPath[path]; !found {
		return hook{}, false, 0
	}
	now := h.clock.Now()
	if !h.limits[path].AllowN(now, 1) {
		after = time.Second
	}
	return of, true, after
}
