package transport

import (
	"context"
	"maps"
	"strings"
	"sync"

	"k8s.io/utils/clock"
)

// mostKinds bounds the kinds with a limiter of their own.
const mostKinds = 256

// traffic bounds the requests to one member: each kind has places of its own, so
// that one that does not answer takes none from the others.
type traffic struct {
	clock clock.WithTicker
	whole *limiter

	mu    sync.Mutex
	kinds map[string]*limiter
}

func newTraffic(c clock.WithTicker) *traffic {
	return &traffic{clock: c, whole: newLimiter(c, firstInFlight, mostInFlight), kinds: map[string]*limiter{}}
}

// acquire waits for a place for a request to path, and returns how to give it
// back. Errors: ErrBusy, or that of ctx.
func (t *traffic) acquire(ctx context.Context, path string) (release func(verdict), err error) {
	kind := t.kind(kindOf(path))
	if err := kind.acquire(ctx); err != nil {
		return nil, err
	}
	if err := t.whole.acquire(ctx); err != nil {
		kind.release(verdict{nothing: true})
		return nil, err
	}
	return func(v verdict) {
		// One kind that is slow or out of order says nothing about the others.
		t.whole.release(verdict{nothing: v.nothing, crowded: v.crowded && v.whole})
		kind.release(v)
	}, nil
}

func (t *traffic) kind(name string) *limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.kinds[name]; ok {
		return l
	}
	if len(t.kinds) >= mostKinds {
		maps.DeleteFunc(t.kinds, func(_ string, l *limiter) bool { return l.idle() })
	}
	l := newLimiter(t.clock, firstOfKind, mostOfKind)
	t.kinds[name] = l
	return l
}

// kindOf returns what a path is about: the group and the plural of the objects,
// or the group alone where it asks for its kinds.
func kindOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group, rest := "", parts
	switch {
	case parts[0] == "apis" && len(parts) > 1:
		group, rest = parts[1], parts[min(3, len(parts)):]
	case parts[0] == "api":
		rest = parts[min(2, len(parts)):]
	default:
		return parts[0]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	if len(rest) == 0 {
		return group + "/"
	}
	return group + "/" + rest[0]
}
