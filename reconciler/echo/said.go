package echo

import "sync"

// Said remembers what was last said about something, so that it is said once.
// The zero value is ready.
type Said[K comparable] struct {
	mu   sync.Mutex
	last map[K]string
}

// New records that text is said about key, and reports whether that is new.
func (s *Said[K]) New(key K, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[K]string{}
	}
	if s.last[key] == text {
		return false
	}
	s.last[key] = text
	return true
}

// Forget ends what was said about key: saying it again is new.
func (s *Said[K]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, key)
}
