package templatestore

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key names a template: its kind, in the version that is propagated, and the
// object.
type Key struct {
	schema.GroupVersionKind
	// Namespace is empty for cluster-scoped templates.
	Namespace, Name string
}

// ObjectKey returns the key without the kind.
func (k Key) ObjectKey() client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: k.Name}
}

// Tenant returns who a template belongs to: its namespace, empty for
// cluster-scoped ones.
func (k Key) Tenant() string { return k.Namespace }

// KeyOf returns the key of a template.
func KeyOf(obj *unstructured.Unstructured) Key {
	return Key{GroupVersionKind: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Presence is what a read knows about a template.
type Presence int

const (
	// Unknown: the kind is not watched, or its first list is not complete.
	Unknown Presence = iota
	// Absent: a complete watch has no such object.
	Absent
	// Present: the object was returned.
	Present
)

// State is what is known about a kind.
type State int

const (
	// Unwanted kinds are not watched because nobody asked for them.
	Unwanted State = iota
	// Unserved kinds are wanted, but the control plane does not serve them.
	Unserved
	// Starting kinds are served, or have an established definition that discovery does not
	// show yet; their first list is not complete.
	Starting
	// Synced kinds are watched and complete.
	Synced
)

// Listener receives changes. Functions are called from the goroutines of the
// watches and must return at once. Nil functions are not called.
type Listener struct {
	// Changed is called with the old and the new version of a template whose
	// propagated content, claim or deletion changed. Before is nil for one
	// that is new, after for one that is gone. First is true while a watch
	// lists what there already was.
	Changed func(key Key, before, after *unstructured.Unstructured, first bool)
	// KindChanged is called when the state of a kind changes.
	KindChanged func(ctx context.Context, gvk schema.GroupVersionKind, state State)
}

// Options are what a Store needs besides a connection.
type Options struct {
	// HTTPClient to reach the control plane with; nil makes one.
	HTTPClient *http.Client
	// Scheme knows CustomResourceDefinition.
	Scheme *runtime.Scheme
	// Mapper finds the resource of a kind; it must notice kinds that appear.
	Mapper meta.RESTMapper
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Claims returns the permanent ids of the policies that claim a template;
	// Claimed finds templates by them. Nil means that nothing is claimed.
	Claims func(obj *unstructured.Unstructured) []string
	// Log receives what the store does on its own.
	Log logr.Logger
}

// Store keeps templates. Use New.
type Store struct {
	opts      Options
	cache     cache.Cache
	live      client.Reader
	queue     workqueue.TypedRateLimitingInterface[schema.GroupVersionKind]
	listeners []Listener

	definitions definitions

	mu      sync.RWMutex
	wants   map[any][]schema.GroupVersionKind
	counts  map[schema.GroupVersionKind]int
	watches map[schema.GroupVersionKind]*watch
	states  map[schema.GroupVersionKind]State
}

// New returns a Store of the templates of the control plane behind cfg. It
// watches nothing until Start runs and Want has named a kind.
func New(cfg *rest.Config, opts Options) (*Store, error) {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Claims == nil {
		opts.Claims = func(*unstructured.Unstructured) []string { return nil }
	}
	templates, err := cache.New(cfg, cache.Options{
		HTTPClient:       opts.HTTPClient,
		Scheme:           opts.Scheme,
		Mapper:           opts.Mapper,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&apiextensionsv1.CustomResourceDefinition{}: {Transform: withoutSchemas},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the cache of templates: %w", err)
	}
	live, err := client.New(cfg, client.Options{HTTPClient: opts.HTTPClient, Scheme: opts.Scheme, Mapper: opts.Mapper})
	if err != nil {
		return nil, fmt.Errorf("set up the reader of templates: %w", err)
	}
	return &Store{
		opts:    opts,
		cache:   templates,
		live:    live,
		queue:   workqueue.NewTypedRateLimitingQueue(retries()),
		wants:   map[any][]schema.GroupVersionKind{},
		counts:  map[schema.GroupVersionKind]int{},
		watches: map[schema.GroupVersionKind]*watch{},
		states:  map[schema.GroupVersionKind]State{},
	}, nil
}

// Register makes mgr run the store.
func (s *Store) Register(mgr ctrl.Manager) error { return mgr.Add(s) }

// Listen adds a listener. Call it before Start.
func (s *Store) Listen(l Listener) { s.listeners = append(s.listeners, l) }

// Want sets the kinds that owner needs now, in place of those that it needed
// before. Owners are distinguished by equality; no kinds means that the owner is
// gone.
func (s *Store) Want(owner any, kinds ...schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gvk := range kinds {
		if s.counts[gvk]++; s.counts[gvk] == 1 {
			s.queue.Add(gvk)
		}
	}
	for _, gvk := range s.wants[owner] {
		if s.counts[gvk]--; s.counts[gvk] == 0 {
			delete(s.counts, gvk)
			s.queue.Add(gvk)
		}
	}
	if len(kinds) == 0 {
		delete(s.wants, owner)
		return
	}
	s.wants[owner] = kinds
}

// State returns what is known about a kind.
func (s *Store) State(gvk schema.GroupVersionKind) State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.states[gvk]
}

// Kinds returns the kinds that are watched, in no order.
func (s *Store) Kinds() []schema.GroupVersionKind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]schema.GroupVersionKind, 0, len(s.watches))
	for gvk := range s.watches {
		out = append(out, gvk)
	}
	return out
}

// Get returns a template, and whether it is known to be there. The object is
// the caller's own. It never waits: what a watch has not listed yet is unknown.
func (s *Store) Get(_ context.Context, key Key) (*unstructured.Unstructured, Presence, error) {
	w, complete := s.watching(key.GroupVersionKind)
	if w == nil {
		return nil, Unknown, nil
	}
	item, found, err := w.indexer.GetByKey(toolscache.ObjectName(key.ObjectKey()).String())
	if err != nil {
		return nil, Unknown, fmt.Errorf("read %s %s from the cache: %w", key.Kind, key.ObjectKey(), err)
	}
	cached, _ := item.(*unstructured.Unstructured)
	latest, found := w.written.Latest(key.ObjectKey(), cached, found)
	switch {
	case !found && complete:
		return nil, Absent, nil
	case !found:
		return nil, Unknown, nil
	default:
		return latest.DeepCopy(), Present, nil
	}
}

// Gone asks the control plane whether a template that is absent here is gone.
// Watches of two kinds are not of the same moment: this one may not have reached
// yet what another one has shown the result of.
func (s *Store) Gone(ctx context.Context, key Key) (bool, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(key.GroupVersionKind)
	err := s.live.Get(ctx, key.ObjectKey(), obj)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look for %s %s: %w", key.Kind, key.ObjectKey(), err)
	}
	return err != nil, nil
}

// Put gives the store a template as the server returned it from a write, so
// that reads see it before the watch does.
func (s *Store) Put(obj *unstructured.Unstructured) {
	if w, _ := s.watching(obj.GroupVersionKind()); w != nil {
		obj = obj.DeepCopy()
		obj.SetManagedFields(nil)
		w.written.Wrote(obj)
	}
}

// List calls yield for each template of a kind that is known so far; an empty
// namespace means all of them. The objects are shared: they must not be
// changed. Templates that are not known yet are announced to the listeners.
func (s *Store) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, yield func(*unstructured.Unstructured)) error {
	if namespace == "" {
		return s.each(gvk, yield, func(i toolscache.Indexer) ([]any, error) { return i.List(), nil })
	}
	return s.each(gvk, yield, func(i toolscache.Indexer) ([]any, error) { return i.ByIndex(toolscache.NamespaceIndex, namespace) })
}

// Claimed is List for the templates that the policy with the given permanent
// id claims.
func (s *Store) Claimed(_ context.Context, gvk schema.GroupVersionKind, id string, yield func(*unstructured.Unstructured)) error {
	return s.each(gvk, yield, func(i toolscache.Indexer) ([]any, error) { return i.ByIndex(claimIndex, id) })
}

func (s *Store) each(gvk schema.GroupVersionKind, yield func(*unstructured.Unstructured), list func(toolscache.Indexer) ([]any, error)) error {
	w, _ := s.watching(gvk)
	if w == nil {
		return nil
	}
	items, err := list(w.indexer)
	if err != nil {
		return fmt.Errorf("list %s from the cache: %w", gvk.Kind, err)
	}
	for _, item := range items {
		if obj, ok := item.(*unstructured.Unstructured); ok {
			yield(obj)
		}
	}
	return nil
}

// watching returns the watch of a kind, nil if there is none, and whether its
// first list is complete.
func (s *Store) watching(gvk schema.GroupVersionKind) (*watch, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w := s.watches[gvk]
	return w, w != nil && w.complete
}
