// Package dedup lets a loop report the same thing about an object once.
//
// In go messages, by what they are about; out comes which of them are new. The package
// reports nothing itself.
package dedup

import "sync"

// Messages remembers the last message about each key. The zero value is ready; it is safe
// for use by several goroutines.
type Messages[K comparable] struct {
	mu   sync.Mutex
	last map[K]string
}

// Record makes text the last message about key, and reports whether that is new.
func (m *Messages[K]) Record(key K, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[K]string{}
	}
	if m.last[key] == text {
		return false
	}
	m.last[key] = text
	return true
}

// Forget drops what is known about key: the next message is new.
func (m *Messages[K]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, key)
}
