package owners

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
)

// Sending holds the objects that are being sent to a member right now. The zero value is ready,
// and safe for use by several goroutines.
type Sending struct {
	mu      sync.Mutex
	objects map[identity]bool
}

// identity identifies an object in a member across versions of its kind.
type identity struct {
	group, kind string
	key         types.NamespacedName
}

// Begin reserves the object of a manifest for one sender until done is called;
// ok is false while another one has it.
func (s *Sending) Begin(m *manifest.Manifest) (done func(), ok bool) {
	o := identity{m.GVK.Group, m.GVK.Kind, m.Key}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[o] {
		return nil, false
	}
	if s.objects == nil {
		s.objects = map[identity]bool{}
	}
	s.objects[o] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.objects, o)
	}, true
}
