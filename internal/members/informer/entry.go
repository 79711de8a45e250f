package informer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// entry is one informer of a kind, and what is known about it. A kind has one,
// and for a moment a second one where its objects are read anew.
type entry struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration
	stop     context.CancelFunc
	done     chan struct{}
	clock    clock.PassiveClock
	brake    brake
	seen     string      // the resource version that it has shown last
	broken   bool        // its last question failed
	fault    error       // with that
	since    time.Time   // and since when; zero while it is not broken
	begun    []time.Time // when it last read all from the beginning, the latest last
}

// trusted reports whether the entry is whole and up to date.
func (s *entry) trusted() bool {
	return s != nil && !s.broken && s.informer.HasSynced() && !s.restless()
}

// find returns an object that is seen; nil where it has none of that name.
func (s *entry) find(key types.NamespacedName) *Observed {
	if s == nil || s.informer == nil {
		return nil
	}
	obj, found, err := s.informer.GetStore().GetByKey(cache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String())
	if err != nil || !found {
		return nil
	}
	observed, _ := obj.(*Observed)
	return observed
}

// start begins to look, until ctx or the entry ends.
func (s *entry) start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		s.informer.RunWithContext(ctx)
	}()
}

// end stops the entry and waits for its end.
func (s *entry) end() {
	if s != nil {
		s.stop()
		<-s.done
	}
}

// synced is closed once the entry has seen the whole list; nil for none.
func (s *entry) synced() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.informer.HasSyncedChecker().Done()
}

// shown is closed once the entry has seen the whole list and has shown all of it; nil
// for none.
func (s *entry) shown() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.handler.HasSyncedChecker().Done()
}

// follow keeps a entry until ctx ends, the kind is gone, or the watch is broken
// and a retry is asked for. Before are the objects that the last one saw: what is gone
// since is reported. It returns the objects seen, and whether to start over at once: not
// where it never got a list although nothing was asked.
func (w *kindWatch) follow(ctx context.Context, kind Kind, before []any) (seen []any, again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case <-w.anew: // all is read by the rules of now
	default:
	}
	resource := w.client.Resource(kind.Resource)
	current, err := w.open(resource, cancel)
	if err != nil {
		return before, false
	}
	var next *entry
	defer func() {
		next.end()
		current.end()
		w.install(nil)
	}()
	w.install(current)
	current.start(ctx) // what it shows before it is the current one would be reported to nobody
	first := current.synced()
	all := func() []any {
		if first != nil { // it has not seen all yet
			return before
		}
		return current.informer.GetStore().List()
	}
	for {
		select {
		case <-ctx.Done():
			return all(), again || current.informer.HasSynced()
		case <-first:
			first = nil
			w.reportUndone()
			miss(before, current, w.changed)
			w.synced(w.gvk)
		case <-w.retry:
			w.mu.Lock()
			again = !w.current.trusted()
			w.mu.Unlock()
			if again {
				cancel()
			}
		case <-w.anew:
			next.end()
			if next, err = w.open(resource, cancel); err != nil {
				return all(), false
			}
			next.start(ctx)
		case <-next.shown(): // what it shows later was not listed
			current.end()
			w.replace(current, next)
			if first != nil {
				miss(before, next, w.changed)
			}
			current, next, first = next, nil, nil
		}
	}
}

// miss reports the objects that were there when an entry ended, and are not in the one
// that was begun anew.
func miss(before []any, now *entry, report func(*Observed)) {
	for _, obj := range before {
		was, ok := obj.(*Observed)
		if !ok {
			continue
		}
		if is := now.find(was.key()); is == nil || was.lost(is) {
			report(was)
		}
	}
}

// install makes s the entry that is read from.
func (w *kindWatch) install(s *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = s
	clear(w.late)
	if s != nil {
		w.unserved = false
	}
}

// replace puts a whole new entry in the place of one that has ended, and reports
// what differs. Nothing is out of entry meanwhile.
func (w *kindWatch) replace(old, next *entry) {
	w.install(next)
	before := map[string]*Observed{}
	store := old.informer.GetStore()
	for _, key := range store.ListKeys() {
		if obj, ok, _ := store.GetByKey(key); ok {
			before[key], _ = obj.(*Observed)
		}
	}
	w.reportUndone()
	w.synced(w.gvk)
	for _, obj := range next.informer.GetStore().List() {
		is, ok := obj.(*Observed)
		if !ok {
			continue
		}
		was := before[cache.MetaObjectToName(is).String()]
		delete(before, cache.MetaObjectToName(is).String())
		if was != nil && was.lost(is) {
			w.changed(was)
		}
		if is.open() || was == nil || !was.same(is) || old.broken {
			w.pass(is)
		}
	}
	for _, gone := range before {
		if gone != nil {
			w.changed(gone)
		}
	}
}

// open prepares a look at a kind. gone is called when it is not served any more.
func (w *kindWatch) open(resource dynamic.ResourceInterface, gone func()) (*entry, error) {
	s := &entry{done: make(chan struct{}), brake: newBrake(), clock: w.clock}
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue
		return o
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := s.brake.wait(ctx); err != nil {
				return nil, err
			}
			list, err := resource.List(ctx, selected(o))
			w.heard(s, err, gone)
			if err == nil && o.Continue == "" { // one list may come in many pages
				s.begin(w)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := s.brake.wait(ctx); err != nil {
				return nil, err
			}
			w.mu.Lock()
			away := s.broken
			w.mu.Unlock()
			back, err := setBack(ctx, away, resource, selected(o))
			if back {
				return nil, apierrors.NewResourceExpired("the member was restored from an earlier time")
			}
			var stream watch.Interface
			if err == nil {
				stream, err = resource.Watch(ctx, selected(o))
			}
			w.heard(s, err, gone)
			if err == nil && o.SendInitialEvents != nil {
				s.begin(w)
			}
			return stream, err
		},
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(w.gvk)
	s.informer = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(source, w.client), example, 0, cache.Indexers{})
	if err := s.informer.SetTransform(w.transform); err != nil {
		return nil, err
	}
	if err := s.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	var err error
	s.handler, err = s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.report(s, obj) },
		UpdateFunc: func(before, after any) { w.reportUpdate(s, before, after) },
		DeleteFunc: func(obj any) { w.report(s, obj) },
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// setBack reports whether a member that was away has yet to reach the version that is
// to be watched from: it was restored from an earlier time, and would show nothing
// until then.
func setBack(ctx context.Context, away bool, resource dynamic.ResourceInterface, from metav1.ListOptions) (bool, error) {
	if !away || from.ResourceVersion == "" || from.SendInitialEvents != nil {
		return false, nil
	}
	now, err := resource.List(ctx, metav1.ListOptions{LabelSelector: from.LabelSelector, Limit: 1})
	if err != nil {
		return false, err
	}
	return earlier(now.GetResourceVersion(), from.ResourceVersion), nil
}

// heard keeps whether a entry can be trusted. A kind that is not served any more
// ends it.
func (w *kindWatch) heard(s *entry, err error, gone func()) {
	if missing(err) {
		w.served.forget(w.gvk)
		gone()
	}
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	w.mu.Lock()
	was := s.broken
	s.broken, s.fault = err != nil, err
	recovered := was && !s.broken && s == w.current && s.informer.HasSynced()
	switch {
	case !s.broken:
		s.since = time.Time{}
	case !was:
		s.since = w.clock.Now()
	}
	w.mu.Unlock()
	if recovered {
		w.synced(w.gvk)
	}
}
