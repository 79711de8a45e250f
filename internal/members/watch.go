package members

import (
	"bytes"
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Presence is what is known about whether an object exists.
type Presence int

const (
	// Unknown: no watch has seen the whole list, or the watch is broken.
	Unknown Presence = iota
	// Absent: a watch that has seen the whole list does not have the object. It
	// may exist without karmada.io/managed=true.
	Absent
	// Present: the object is there.
	Present
	// Unserved: the member does not serve the kind.
	Unserved
)

const (
	// unseen is how long an own write counts before the watch has shown it.
	unseen = 10 * time.Second
	// firstRetry and lastRetry bound the wait before a kind that is not served
	// is looked for again; a change of the member's kinds ends it.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// kindWatch follows the managed objects of one kind in one member. Its trouble
// is its own: other kinds go on.
type kindWatch struct {
	gvk         schema.GroupVersionKind
	lookup      func(context.Context, schema.GroupVersionKind) (Kind, error)
	forget      func(schema.GroupVersionKind)
	client      dynamic.Interface
	interpreter Interpreter
	clock       clock.WithTicker
	changed     func(*Observed)
	synced      func(schema.GroupVersionKind)
	retry       chan struct{} // asks to look again at once

	mu       sync.Mutex
	informer cache.SharedIndexInformer // nil while there is none
	unserved bool                      // the member said that it does not serve the kind
	broken   bool
	seen     string // the resource version that the informer has shown last
	wrote    map[types.NamespacedName]write
}

// write is an object as the member answered an own write with it.
type write struct {
	observed *Observed
	at       time.Time
}

// read returns what is known about one object.
func (w *kindWatch) read(key types.NamespacedName) (*Observed, Presence) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cached, presence := w.cached(key)
	own, ok := w.wrote[key]
	if !ok {
		return cached, presence
	}
	if w.clock.Since(own.at) > unseen || (presence == Present && !older(cached, own.observed)) {
		delete(w.wrote, key)
		return cached, presence
	}
	return own.observed, Present
}

func (w *kindWatch) cached(key types.NamespacedName) (*Observed, Presence) {
	if w.unserved {
		return nil, Unserved
	}
	if w.informer == nil || w.broken || !w.informer.HasSynced() {
		return nil, Unknown
	}
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + key.Name
	}
	obj, found, err := w.informer.GetStore().GetByKey(name)
	if err != nil || !found {
		return nil, Absent
	}
	observed, ok := obj.(*Observed)
	if !ok {
		return nil, Unknown
	}
	return observed, Present
}

func older(a, b *Observed) bool { return earlier(a.ResourceVersion, b.ResourceVersion) }

// earlier says whether the resource version a was certainly made before b.
func earlier(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// note remembers an own write until the watch shows it. The watch may have done
// so before the answer to the write was read, and the object be gone again.
func (w *kindWatch) note(observed *Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != "" && !earlier(w.seen, observed.ResourceVersion) {
		return
	}
	w.wrote[types.NamespacedName{Namespace: observed.Namespace, Name: observed.Name}] = write{observed: observed, at: w.clock.Now()}
}

// drop forgets an own write that a later delete has undone.
func (w *kindWatch) drop(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wrote, key)
}

// again asks a watch that is in trouble to try at once.
func (w *kindWatch) again() {
	select {
	case w.retry <- struct{}{}:
	default:
	}
}

// run follows the kind until ctx ends: it finds out how the kind is served,
// watches it until that is no longer true, and starts over.
func (w *kindWatch) run(ctx context.Context) {
	wait := firstRetry
	var last []any
	for ctx.Err() == nil {
		kind, err := w.lookup(ctx, w.gvk)
		if err == nil {
			var again bool
			if last, again = w.follow(ctx, kind); again {
				wait = firstRetry
				continue
			}
		} else if meta.IsNoMatchError(err) {
			w.lose(last)
			last = nil
		}
		w.pause(ctx, wait)
		wait = min(2*wait, lastRetry)
	}
}

// lose keeps that the kind is not served, and tells of the objects that were
// last seen of it.
func (w *kindWatch) lose(objects []any) {
	w.mu.Lock()
	known := w.unserved
	w.unserved = true
	clear(w.wrote)
	w.mu.Unlock()
	if known {
		return
	}
	w.synced(w.gvk)
	for _, obj := range objects {
		if observed, ok := obj.(*Observed); ok {
			w.changed(observed)
		}
	}
}

func (w *kindWatch) pause(ctx context.Context, d time.Duration) {
	timer := w.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.retry:
	case <-timer.C():
	}
}

// follow runs one informer until ctx ends, the kind is gone, or the watch is
// broken and a retry is asked for. It returns the objects seen, and whether to
// start over at once: not where it never got a list although nothing was asked.
func (w *kindWatch) follow(ctx context.Context, kind Kind) (seen []any, again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informer, err := w.newInformer(kind, cancel)
	if err != nil {
		return nil, false
	}
	w.install(informer)
	defer w.install(nil)

	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-informer.HasSyncedChecker().Done():
			w.settle(informer)
			w.synced(w.gvk)
		}
	})
	for {
		select {
		case <-ctx.Done():
			return informer.GetStore().List(), again || informer.HasSynced()
		case <-w.retry:
			if w.inTrouble() {
				again = true
				cancel()
			}
		}
	}
}

func (w *kindWatch) install(informer cache.SharedIndexInformer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.informer, w.broken, w.seen = informer, false, ""
	if informer != nil {
		w.unserved = false
	}
}

func (w *kindWatch) inTrouble() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken || w.informer == nil || !w.informer.HasSynced()
}

func (w *kindWatch) newInformer(kind Kind, gone func()) (cache.SharedIndexInformer, error) {
	resource := w.client.Resource(kind.Resource)
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue
		return o
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, selected(o))
			w.answered(err, gone)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			stream, err := resource.Watch(ctx, selected(o))
			w.answered(err, gone)
			return stream, err
		},
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(w.gvk)
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(source, w.client), example, 0, cache.Indexers{})
	if err := informer.SetTransform(w.transform); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.tell,
		UpdateFunc: w.tellUpdate,
		DeleteFunc: w.tell,
	})
	return informer, err
}

// answered keeps whether the watch can be trusted. A kind that is not served any
// more ends the informer.
func (w *kindWatch) answered(err error, gone func()) {
	if missing(err) {
		w.forget(w.gvk)
		gone()
	}
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	w.mu.Lock()
	recovered := w.broken && err == nil && w.informer != nil && w.informer.HasSynced()
	w.broken = err != nil
	w.mu.Unlock()
	if recovered {
		w.synced(w.gvk)
	}
}

// transform reduces an object to what is kept of it. One that cannot be read is
// kept without its hash: an error would leave out, or even stop, all others.
func (w *kindWatch) transform(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	observed, err := trim(object, w.interpreter)
	if err != nil {
		observed = Marks(object)
		observed.Health = workv1alpha1.ResourceUnknown
	}
	return observed, nil
}

func (w *kindWatch) tell(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if observed, ok := obj.(*Observed); ok {
		w.caughtUp(observed)
		w.changed(observed)
	}
}

// caughtUp ends the wait for an own write that the watch has now shown, or has
// gone beyond.
func (w *kindWatch) caughtUp(seen *Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !earlier(seen.ResourceVersion, w.seen) {
		w.seen = seen.ResourceVersion
	}
	key := types.NamespacedName{Namespace: seen.Namespace, Name: seen.Name}
	if own, ok := w.wrote[key]; ok && !older(seen, own.observed) {
		delete(w.wrote, key)
	}
}

// settle tells about own writes that a first whole list does not have although
// it was made later: somebody has undone them.
func (w *kindWatch) settle(informer cache.SharedIndexInformer) {
	listed := &Observed{ObjectMeta: metav1.ObjectMeta{ResourceVersion: informer.LastSyncResourceVersion()}}
	var undone []*Observed
	w.mu.Lock()
	for key, own := range w.wrote {
		if _, presence := w.cached(key); presence == Absent && !older(listed, own.observed) {
			delete(w.wrote, key)
			undone = append(undone, own.observed)
		}
	}
	w.mu.Unlock()
	for _, observed := range undone {
		w.changed(observed)
	}
}

// tellUpdate leaves out what nobody asks about: fields of others, leases of
// their managers, and resource versions.
func (w *kindWatch) tellUpdate(before, after any) {
	was, ok := before.(*Observed)
	is, also := after.(*Observed)
	if ok && also && was.same(is) {
		w.caughtUp(is)
		return
	}
	w.tell(after)
}

func (o *Observed) same(other *Observed) bool {
	return o.UID == other.UID && o.Managed == other.Managed && o.Work == other.Work && o.Owned == other.Owned &&
		o.Health == other.Health && rawEqual(o.Status, other.Status) &&
		o.DeletionTimestamp.IsZero() == other.DeletionTimestamp.IsZero()
}

func rawEqual(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Raw, b.Raw)
}

// missing says whether err means that the member does not serve what was asked
// for, rather than that an object is not there.
func missing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
