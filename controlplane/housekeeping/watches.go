package housekeeping

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
)

// watches is an informer factory that lets go of kinds that the server does not have any
// more. Upstream's keeps asking for them until it ends, and logs each time that they are
// not there.
type watches struct {
	// typed are the controllers' own objects, which are shared; nil: each kind has its
	// names alone.
	typed informers.SharedInformerFactory
	// metadata returns an empty factory of informers of metadata.
	metadata func() metadatainformer.SharedInformerFactory

	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]*watched
}

// watched is one kind.
type watched struct {
	factory metadatainformer.SharedInformerFactory
	started bool
	gone    chan struct{}
}

func newWatches(typed informers.SharedInformerFactory, metadata func() metadatainformer.SharedInformerFactory) *watches {
	return &watches{typed: typed, metadata: metadata, kinds: map[schema.GroupVersionResource]*watched{}}
}

// ForResource never fails: any resource has metadata.
func (w *watches) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	if w.typed != nil {
		if informer, err := w.typed.ForResource(resource); err == nil {
			return informer, nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := w.kinds[resource]
	if kind == nil {
		kind = &watched{factory: w.metadata(), gone: make(chan struct{})}
		w.kinds[resource] = kind
	}
	return kind.factory.ForResource(resource), nil
}

// Start lets those run that were asked for and do not yet.
func (w *watches) Start(stop <-chan struct{}) {
	if w.typed != nil {
		w.typed.Start(stop)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range w.kinds {
		if kind.started {
			continue
		}
		kind.started = true
		either := make(chan struct{})
		go func() {
			defer close(either)
			select {
			case <-stop:
			case <-kind.gone:
			}
		}()
		kind.factory.Start(either)
	}
}

// forget ends what is followed of a kind. Who asks for it again gets a new informer.
func (w *watches) forget(resource schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind := w.kinds[resource]; kind != nil {
		close(kind.gone)
		delete(w.kinds, resource)
	}
}
