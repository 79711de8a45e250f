package templatestore

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// definitions knows which versions the CustomResourceDefinitions serve. Kinds
// without one are not tracked. The zero value knows nothing.
type definitions struct {
	mu sync.RWMutex
	// served has the versions of each kind that was ever defined; none for one
	// whose definition was removed or is not established.
	served map[schema.GroupKind]map[string]bool
}

// serves reports whether the definition of the kind serves the version. Known is
// false for kinds without a definition.
func (d *definitions) serves(gvk schema.GroupVersionKind) (served, known bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	versions, known := d.served[gvk.GroupKind()]
	return versions[gvk.Version], known
}

// follow keeps up with the definitions in the cache until ctx ends, calls
// changed for each kind that is served otherwise than before, and returns once
// all that exist are known.
func (d *definitions) follow(ctx context.Context, informers cache.Informers, changed func(schema.GroupKind)) error {
	informer, err := informers.GetInformer(ctx, &apiextensionsv1.CustomResourceDefinition{})
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	note := func(obj any, removed bool) {
		if gk, differs := d.note(obj, removed); differs {
			changed(gk)
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { note(obj, false) },
		UpdateFunc: func(_, obj any) { note(obj, false) },
		DeleteFunc: func(obj any) { note(obj, true) },
	})
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	select {
	case <-ctx.Done():
	case <-registration.HasSyncedChecker().Done():
	}
	return nil
}

// note records a definition and returns its kind, and whether it is served
// otherwise than before.
func (d *definitions) note(obj any, removed bool) (schema.GroupKind, bool) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return schema.GroupKind{}, false
	}
	gk := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	now := map[string]bool{}
	if !removed && established(crd) {
		for _, v := range crd.Spec.Versions {
			now[v.Name] = v.Served
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before, known := d.served[gk]
	if known && maps.Equal(before, now) {
		return gk, false
	}
	if d.served == nil {
		d.served = map[schema.GroupKind]map[string]bool{}
	}
	d.served[gk] = now
	return gk, true
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// withoutSchemas drops what is large and unused in a definition.
func withoutSchemas(obj any) (any, error) {
	if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.ManagedFields = nil
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema = nil
		}
	}
	return obj, nil
}
