package housekeeping

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
)

// followed stands in for informers, and keeps who listens to them.
type followed map[string]cache.ResourceEventHandler

func (w followed) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return &followedKind{handlers: w, resource: resource.Resource}, nil
}

func (followed) Start(<-chan struct{}) {}

type followedKind struct {
	informers.GenericInformer
	cache.SharedIndexInformer
	handlers followed
	resource string
}

func (k *followedKind) Informer() cache.SharedIndexInformer { return k }

func (k *followedKind) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	k.handlers[k.resource] = h
	return nil, nil
}

// TestKindsAreFollowed: the garbage collector's next question, which comes within
// a second, goes to the server once a definition of kinds has changed.
func TestKindsAreFollowed(t *testing.T) {
	at := func(version string) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	cases := map[string]struct {
		event func(cache.ResourceEventHandler)
		asked int
	}{
		"one is made":                      {func(h cache.ResourceEventHandler) { h.OnAdd(at("1"), false) }, 2},
		"one is changed":                   {func(h cache.ResourceEventHandler) { h.OnUpdate(at("1"), at("2")) }, 2},
		"one goes":                         {func(h cache.ResourceEventHandler) { h.OnDelete(at("1")) }, 2},
		"one is as it was, and told again": {func(h cache.ResourceEventHandler) { h.OnUpdate(at("1"), at("1")) }, 1},
	}
	for name, tc := range cases {
		for _, resource := range []string{"apiservices", "customresourcedefinitions"} {
			t.Run(name+", of "+resource, func(t *testing.T) {
				server, handlers := &countingServer{}, followed{}
				kinds := newKinds(server, testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0)), func(schema.GroupVersionResource) {})
				if err := kinds.follow(handlers); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"apiservices", "customresourcedefinitions"}, slices.Sorted(maps.Keys(handlers))); diff != "" {
					t.Fatalf("followed (-want +got):\n%s", diff)
				}
				ask := func() {
					if _, err := kinds.ServerPreferredResources(); err != nil {
						t.Fatal(err)
					}
				}
				ask()
				tc.event(handlers[resource])
				ask()
				if server.asked != tc.asked {
					t.Errorf("the server was asked %d times, want %d", server.asked, tc.asked)
				}
			})
		}
	}
}
