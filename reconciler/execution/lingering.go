package execution

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ordinaryRemoval is how long a deletion may take before that is reported: a namespace, for example, first ends its
// contents.
const ordinaryRemoval = 30 * time.Second

// lingering holds the Works for which it was reported that their deletion takes long. It may be lost, and is safe for
// use by several goroutines.
type lingering struct {
	mu       sync.Mutex
	reported map[client.ObjectKey]bool
}

// first reports whether a Work was not reported yet, and records that it is now.
func (l *lingering) first(key client.ObjectKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported[key] {
		return false
	}
	if l.reported == nil {
		l.reported = map[client.ObjectKey]bool{}
	}
	l.reported[key] = true
	return true
}

// Forget drops what is kept of a Work that is gone.
func (l *lingering) Forget(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reported, key)
}
