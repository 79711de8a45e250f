package hub

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kinds is a RESTMapper that caches how the hub serves a kind when it is first
// asked for. It notices new kinds by itself; of kinds that were removed somebody
// has to notify it by Reset.
type kinds struct {
	ask func() (meta.RESTMapper, error)

	mu    sync.RWMutex
	known meta.RESTMapper
}

var _ meta.ResettableRESTMapper = (*kinds)(nil)

// newKinds is a manager's MapperProvider.
func newKinds(cfg *rest.Config, http *http.Client) (meta.RESTMapper, error) {
	k := &kinds{ask: func() (meta.RESTMapper, error) { return apiutil.NewDynamicRESTMapper(cfg, http) }}
	var err error
	k.known, err = k.ask()
	return k, err
}

// Reset drops the cache, so that kinds are looked up at the hub again. It is for
// callers that got the response that a kind does not exist which did before.
func (k *kinds) Reset() {
	fresh, err := k.ask()
	if err != nil {
		return // cannot happen: the same settings worked in newKinds
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = fresh
}

func (k *kinds) now() meta.RESTMapper {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.known
}

func (k *kinds) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return k.now().KindFor(r)
}

func (k *kinds) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return k.now().KindsFor(r)
}

func (k *kinds) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return k.now().ResourceFor(r)
}

func (k *kinds) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return k.now().ResourcesFor(r)
}

func (k *kinds) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return k.now().RESTMapping(gk, versions...)
}

func (k *kinds) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return k.now().RESTMappings(gk, versions...)
}

func (k *kinds) ResourceSingularizer(resource string) (string, error) {
	return k.now().ResourceSingularizer(resource)
}
