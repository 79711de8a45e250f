package informer

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Kind is how a member serves a kind.
type Kind struct {
	// Resource is the plural and its group and version.
	Resource schema.GroupVersionResource
	// Namespaced reports whether objects live in namespaces.
	Namespaced bool
}

// catalogue remembers how a member serves its kinds. What is not known is asked for,
// one group and version at a time, and not remembered as missing.
type catalogue struct {
	client rest.Interface

	mu    sync.Mutex
	known map[schema.GroupVersionKind]Kind
}

func newCatalogue(client rest.Interface) *catalogue {
	return &catalogue{client: client, known: map[schema.GroupVersionKind]Kind{}}
}

// lookup returns how gvk is served. An error that meta.IsNoMatchError knows says
// that it is not.
func (k *catalogue) lookup(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	k.mu.Lock()
	kind, ok := k.known[gvk]
	k.mu.Unlock()
	if ok {
		return kind, nil
	}
	served, err := k.discover(ctx, gvk.GroupVersion())
	if err != nil {
		return Kind{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for gvk, kind := range served {
		k.known[gvk] = kind
	}
	if kind, ok = k.known[gvk]; !ok {
		return Kind{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return kind, nil
}

// discover asks for the kinds of one group and version. A member that does not
// serve it has none.
func (k *catalogue) discover(ctx context.Context, gv schema.GroupVersion) (map[schema.GroupVersionKind]Kind, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	var list metav1.APIResourceList
	err := k.client.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Into(&list)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the kinds of %s: %w", gv, err)
	}
	out := map[schema.GroupVersionKind]Kind{}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		out[gv.WithKind(r.Kind)] = Kind{Resource: gv.WithResource(r.Name), Namespaced: r.Namespaced}
	}
	return out, nil
}

// forget drops one kind, which turned out not to be served any more.
func (k *catalogue) forget(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, gvk)
}

// reset drops all kinds.
func (k *catalogue) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.known)
}
