package templatestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// claimIndex finds templates by the policy that claims them.
const claimIndex = "claim"

// unservedPoll is how often a kind that is not served is looked for again.
// Definitions announce themselves; aggregated APIs do not.
const unservedPoll = 30 * time.Second

// watch is the running watch of one kind. What it has seen is read from its own
// indexer: the cache's readers would wait until its first list is complete, and
// a kind that cannot be listed would block every reader of it.
type watch struct {
	written *writecache.Cache[*unstructured.Unstructured]
	indexer toolscache.Indexer
	stop    context.CancelFunc
	// complete says that the first list is; guarded by the store's lock.
	complete bool
}

// retries paces the attempts to watch a kind that was announced but cannot be
// found yet.
func retries() workqueue.TypedRateLimiter[schema.GroupVersionKind] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[schema.GroupVersionKind](20*time.Millisecond, 10*time.Second)
}

// NeedLeaderElection keeps the definitions up to date on a stand-by. It watches kinds once
// it leads: only loops want them.
func (s *Store) NeedLeaderElection() bool { return false }

// Start watches the kinds that are wanted until ctx ends.
func (s *Store) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.cache.Start(ctx) }()
	if err := s.definitions.follow(ctx, s.cache, s.redefined); err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		s.queue.ShutDown()
	}()
	for s.next(ctx) {
	}
	return <-ended
}

// next handles one kind whose wants or definition changed.
func (s *Store) next(ctx context.Context) bool {
	gvk, shutdown := s.queue.Get()
	if shutdown {
		return false
	}
	defer s.queue.Done(gvk)
	again, err := s.ensure(ctx, gvk)
	switch {
	case err != nil:
		s.opts.Log.Error(err, "a kind cannot be watched", "kind", gvk.String())
		s.queue.AddRateLimited(gvk)
	case again:
		s.queue.AddRateLimited(gvk)
	default:
		s.queue.Forget(gvk)
	}
	return true
}

// redefined looks again at the wanted versions of a kind.
func (s *Store) redefined(gk schema.GroupKind) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for gvk := range s.counts {
		if gvk.GroupKind() == gk {
			s.queue.Forget(gvk)
			s.queue.Add(gvk)
		}
	}
}

// ensure starts or stops the watch of a kind. It returns true where the kind
// is announced but not served yet.
func (s *Store) ensure(ctx context.Context, gvk schema.GroupVersionKind) (again bool, err error) {
	s.mu.RLock()
	wanted, running := s.counts[gvk] > 0, s.watches[gvk]
	s.mu.RUnlock()
	served, defined := s.definitions.serves(gvk)
	if !wanted {
		return false, s.drop(ctx, gvk, running, Unwanted)
	}
	if defined && !served {
		return false, s.drop(ctx, gvk, running, Unserved)
	}
	if running != nil {
		return false, nil
	}
	if _, err := s.opts.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		if !meta.IsNoMatchError(err) {
			return false, fmt.Errorf("look up %s: %w", gvk, err)
		}
		if defined { // established: discovery is behind
			return true, s.drop(ctx, gvk, nil, Starting)
		}
		s.queue.AddAfter(gvk, unservedPoll)
		return false, s.drop(ctx, gvk, nil, Unserved)
	}
	return false, s.watch(ctx, gvk)
}

func (s *Store) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	informer, err := informerOf(ctx, s.cache, gvk, s.opts.Claims)
	if err != nil {
		return errors.Join(fmt.Errorf("watch %s: %w", gvk, err), s.cache.RemoveInformer(ctx, example(gvk)))
	}
	watchCtx, stop := context.WithCancel(ctx)
	w := &watch{written: writecache.New[*unstructured.Unstructured](s.opts.Clock), indexer: informer.GetIndexer(), stop: stop}
	// Listeners ask about the first event already.
	s.mu.Lock()
	s.watches[gvk] = w
	s.mu.Unlock()
	s.setState(ctx, gvk, w, Starting)
	registration, err := informer.AddEventHandler(w.handler(gvk, s.listeners))
	if err != nil {
		return errors.Join(fmt.Errorf("watch %s: %w", gvk, err), s.drop(ctx, gvk, w, Unserved))
	}
	s.opts.Log.Info("watching a kind", "kind", gvk.String())
	go func() {
		select {
		case <-watchCtx.Done():
		case <-registration.HasSyncedChecker().Done():
			s.setState(watchCtx, gvk, w, Synced)
		}
	}()
	return nil
}

// informerOf returns the informer of a kind, with the index of claims.
func informerOf(ctx context.Context, informers cache.Informers, gvk schema.GroupVersionKind, claims func(*unstructured.Unstructured) []string) (toolscache.SharedIndexInformer, error) {
	informer, err := informers.GetInformer(ctx, example(gvk), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("informer of type %T has no indexer", informer)
	}
	return shared, shared.AddIndexers(toolscache.Indexers{claimIndex: func(obj any) ([]string, error) {
		template, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, nil
		}
		return claims(template), nil
	}})
}

// drop ends the watch of a kind, if there is one, and records why it has none.
func (s *Store) drop(ctx context.Context, gvk schema.GroupVersionKind, running *watch, why State) error {
	s.mu.Lock()
	delete(s.watches, gvk)
	s.mu.Unlock()
	s.setState(ctx, gvk, nil, why)
	if running == nil {
		return nil
	}
	running.stop()
	s.opts.Log.Info("letting a kind go", "kind", gvk.String())
	if err := s.cache.RemoveInformer(ctx, example(gvk)); err != nil {
		return fmt.Errorf("end the watch of %s: %w", gvk, err)
	}
	return nil
}

// setState records the state of a kind and reports it. W is the watch that
// found it out, if one did; a watch that was replaced meanwhile has no say.
func (s *Store) setState(ctx context.Context, gvk schema.GroupVersionKind, w *watch, state State) {
	s.mu.Lock()
	if s.watches[gvk] != w {
		s.mu.Unlock()
		return
	}
	if w != nil {
		w.complete = state == Synced
	}
	before := s.states[gvk]
	if state == Unwanted {
		delete(s.states, gvk)
	} else {
		s.states[gvk] = state
	}
	s.mu.Unlock()
	if before == state {
		return
	}
	for _, l := range s.listeners {
		if l.KindChanged != nil {
			l.KindChanged(ctx, gvk, state)
		}
	}
}

// handler turns the events of one watch into those of the listeners.
func (w *watch) handler(gvk schema.GroupVersionKind, listeners []Listener) toolscache.ResourceEventHandler {
	report := func(before, after *unstructured.Unstructured, first bool) {
		some := after
		if some == nil {
			some = before
		}
		key := Key{GroupVersionKind: gvk, Namespace: some.GetNamespace(), Name: some.GetName()}
		for _, l := range listeners {
			if l.Changed != nil {
				l.Changed(key, before, after, first)
			}
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			if after, ok := obj.(*unstructured.Unstructured); ok {
				report(nil, after, first)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, _ := old.(*unstructured.Unstructured)
			after, ok := obj.(*unstructured.Unstructured)
			if !ok || before == nil {
				return
			}
			if w.written.Observed(after); !sameContent(before, after) {
				report(before, after, false)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if before, ok := obj.(*unstructured.Unstructured); ok {
				w.written.Gone(before)
				report(before, nil, false)
			}
		},
	}
}

// bookkeeping are the metadata fields that the server changes by itself.
var bookkeeping = []string{"resourceVersion", "generation", "managedFields", "selfLink"}

// sameContent reports whether two versions of a template differ in nothing but
// their status and the server's bookkeeping.
func sameContent(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(content(a), content(b)) && equality.Semantic.DeepEqual(metadata(a), metadata(b))
}

func content(obj *unstructured.Unstructured) map[string]any {
	out := maps.Clone(obj.Object)
	delete(out, "status")
	delete(out, "metadata")
	return out
}

func metadata(obj *unstructured.Unstructured) map[string]any {
	all, _ := obj.Object["metadata"].(map[string]any)
	out := maps.Clone(all)
	for _, key := range bookkeeping {
		delete(out, key)
	}
	return out
}

func example(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}
