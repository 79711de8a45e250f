package template

import (
	"sync"

	"github.com/flotilla-io/flotilla/reconciler/template/store"
)

// failures remembers what was told about templates that fail, so that it is
// told once. The zero value is ready.
type failures struct {
	mu   sync.Mutex
	told map[store.Key]string
}

// isNew records message and says whether it differs from the last one.
func (f *failures) isNew(key store.Key, message string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told == nil {
		f.told = map[store.Key]string{}
	}
	if f.told[key] == message {
		return false
	}
	f.told[key] = message
	return true
}

// clear forgets the failure of key.
func (f *failures) clear(key store.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.told, key)
}
