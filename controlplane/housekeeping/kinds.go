package housekeeping

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/utils/clock"
)

const (
	// kindsPeriod is how often the garbage collector asks which kinds exist.
	kindsPeriod = time.Second
	// kindsMaxAge is how old the answer may be while no definition of a kind changed.
	kindsMaxAge = 30 * time.Second
	// kindsRecheck is how long after such a change the server is asked anew each time: it serves a kind a little
	// after it has been defined.
	kindsRecheck = 5 * time.Second
)

// kinds answers which resources the server has. It asks the server when a definition of kinds has just changed or
// the last answer is old, and answers from memory else: so the garbage collector can ask every second and see a
// new kind at once, at no cost while nothing changes.
type kinds struct {
	discovery.ServerResourcesInterface
	clock clock.PassiveClock
	// gone hears of each resource that the server had and has no more, or prefers another
	// version of.
	gone func(schema.GroupVersionResource)

	mu        sync.Mutex
	askUntil  time.Time
	askedAt   time.Time
	preferred []*metav1.APIResourceList
	err       error
	had       map[schema.GroupVersionResource]struct{} // by the last answer that was whole
}

func newKinds(server discovery.ServerResourcesInterface, clock clock.PassiveClock, gone func(schema.GroupVersionResource)) *kinds {
	return &kinds{ServerResourcesInterface: server, clock: clock, gone: gone}
}

// follow lets the definitions of kinds, of both sorts, end the validity of the last answer.
func (k *kinds) follow(informers informerfactory.InformerFactory) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { k.changed() },
		UpdateFunc: func(before, after any) {
			if version(before) != version(after) {
				k.changed()
			}
		},
		DeleteFunc: func(any) { k.changed() },
	}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	} {
		informer, err := informers.ForResource(resource)
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
		if _, err := informer.Informer().AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
	}
	return nil
}

func (k *kinds) changed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.askUntil = k.clock.Now().Add(kindsRecheck)
}

func version(obj any) string {
	if accessor, ok := obj.(metav1.Object); ok {
		return accessor.GetResourceVersion()
	}
	return ""
}

// ServerPreferredResources is what the garbage collector asks.
func (k *kinds) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if k.err != nil || now.Before(k.askUntil) || now.Sub(k.askedAt) >= kindsMaxAge {
		k.preferred, k.err = k.ServerResourcesInterface.ServerPreferredResources()
		k.askedAt = now
		k.compare()
	}
	return k.preferred, k.err
}

// compare reports what is gone. An answer that lacks a group because that does not answer
// says nothing.
func (k *kinds) compare() {
	if k.err != nil {
		return
	}
	now, err := discovery.GroupVersionResources(k.preferred)
	if err != nil {
		return
	}
	for resource := range k.had {
		if _, has := now[resource]; !has {
			k.gone(resource)
		}
	}
	k.had = now
}

// namespaced are the resources that lie in namespaces, for quotas.
func (k *kinds) namespaced() ([]*metav1.APIResourceList, error) {
	all, err := k.ServerPreferredResources()
	return discovery.FilteredBy(discovery.ResourcePredicateFunc(func(_ string, r *metav1.APIResource) bool { return r.Namespaced }), all), err
}
