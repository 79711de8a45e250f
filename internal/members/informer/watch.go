package informer

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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
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
	served      served
	client      dynamic.Interface
	interpreter Interpreter
	clock       clock.WithTicker
	changed     func(*Observed)
	synced      func(schema.GroupVersionKind)
	retry       chan struct{} // asks to look again at once
	anew        chan struct{} // asks to read all objects anew
	recheck     *recheckQueue

	mu       sync.Mutex
	current  *entry // nil while there is none
	last     []any  // what was seen before the current one has seen all
	unserved bool   // the member answered that it does not serve the kind
	wrote    map[types.NamespacedName]write
	late     map[types.NamespacedName]*Observed // answers that came after their object
}

// served returns how the member serves a kind, and records that it does not any more.
type served struct {
	lookup func(context.Context, schema.GroupVersionKind) (Kind, error)
	forget func(schema.GroupVersionKind)
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
		return w.answered(cached), presence
	}
	if w.clock.Since(own.at) > unseen || (presence == Present && !older(cached, own.observed)) {
		delete(w.wrote, key)
		return w.answered(cached), presence
	}
	return w.answered(own.observed), Present
}

// answered returns an object with the answers about it that came later.
func (w *kindWatch) answered(o *Observed) *Observed {
	if o == nil || !o.open() {
		return o
	}
	if late, ok := w.late[o.key()]; ok && late.UID == o.UID && late.ResourceVersion == o.ResourceVersion {
		return late
	}
	return o
}

func (w *kindWatch) cached(key types.NamespacedName) (*Observed, Presence) {
	if w.unserved {
		return nil, Unserved
	}
	if !w.current.trusted() {
		return nil, Unknown
	}
	observed := w.current.find(key)
	if observed == nil {
		return nil, Absent
	}
	return observed, Present
}

// each calls yield for what the watch has seen, if that is all that there is.
func each(w *kindWatch, yield func(schema.GroupVersionKind, *Observed)) {
	w.mu.Lock()
	current, whole := w.current, !w.unserved && w.current.trusted()
	w.mu.Unlock()
	if !whole {
		return
	}
	for _, obj := range current.informer.GetStore().List() {
		if observed, ok := obj.(*Observed); ok {
			yield(w.gvk, observed)
		}
	}
}

func older(a, b *Observed) bool { return earlier(a.ResourceVersion, b.ResourceVersion) }

// earlier reports whether the resource version a was certainly made before b.
func earlier(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// note remembers an own write until the watch shows it. The watch may have done
// so before the answer to the write was read, and the object be gone again.
func (w *kindWatch) note(observed *Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil && w.current.seen != "" && !earlier(w.current.seen, observed.ResourceVersion) {
		return
	}
	w.wrote[observed.key()] = write{observed: observed, at: w.clock.Now()}
}

// drop forgets an own write that a later delete has undone.
func (w *kindWatch) drop(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wrote, key)
}

// signal asks for something that is done once, however often it is asked for.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run follows the kind until ctx ends: it finds out how the kind is served,
// watches it until that is no longer true, and starts over.
func (w *kindWatch) run(ctx context.Context) {
	wait := firstRetry
	for ctx.Err() == nil {
		kind, err := w.served.lookup(ctx, w.gvk)
		if err == nil {
			last, again := w.follow(ctx, kind, seen(w))
			keep(w, last)
			if again {
				wait = firstRetry
				continue
			}
		} else if meta.IsNoMatchError(err) {
			w.lose(seen(w))
			keep(w, nil)
		}
		w.pause(ctx, wait)
		wait = min(2*wait, lastRetry)
	}
}

// seen returns the objects that were last seen of a kind.
func seen(w *kindWatch) []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil && w.current.informer.HasSynced() {
		return w.current.informer.GetStore().List()
	}
	return w.last
}

// keep keeps what was seen for the next look.
func keep(w *kindWatch, last []any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = last
}

// lose records that the kind is not served, and reports the objects that were
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

// transform reduces an object to what is kept of it. One that cannot be read is
// kept without its hash: an error would leave out, or even stop, all others.
func (w *kindWatch) transform(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	observed, err := trim(object, w.interpreter)
	if err != nil {
		observed = MetadataOf(object)
		observed.Health = workv1alpha1.ResourceUnknown
	}
	if observed.Pending {
		w.recheck.replace(w, object)
	}
	return observed, nil
}

// report passes on what the current entry shows. What the next one shows before it
// takes over is reported then.
func (w *kindWatch) report(s *entry, obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if observed, ok := obj.(*Observed); ok && w.caughtUp(s, observed) {
		w.pass(observed)
	}
}

// pass reports an object, and asks again about one that has no answer yet.
func (w *kindWatch) pass(observed *Observed) {
	w.recheck.again(w, observed)
	w.changed(observed)
}

// caughtUp ends the wait for an own write that the watch has now shown, or has
// gone beyond. It returns false for a entry that is not the current one.
func (w *kindWatch) caughtUp(s *entry, seen *Observed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s != w.current {
		return false
	}
	if !earlier(seen.ResourceVersion, s.seen) {
		s.seen = seen.ResourceVersion
	}
	if own, ok := w.wrote[seen.key()]; ok && !older(seen, own.observed) {
		delete(w.wrote, seen.key())
	}
	if late, ok := w.late[seen.key()]; ok && late.ResourceVersion != seen.ResourceVersion {
		delete(w.late, seen.key())
	}
	return true
}

// reportUndone reports own writes that are missing from a first whole list although it
// was made later: somebody has undone them.
func (w *kindWatch) reportUndone() {
	var undone []*Observed
	w.mu.Lock()
	if w.current != nil {
		listed := &Observed{ObjectMeta: metav1.ObjectMeta{ResourceVersion: w.current.informer.LastSyncResourceVersion()}}
		for key, own := range w.wrote {
			if _, presence := w.cached(key); presence == Absent && !older(listed, own.observed) {
				delete(w.wrote, key)
				undone = append(undone, own.observed)
			}
		}
	}
	w.mu.Unlock()
	for _, observed := range undone {
		w.changed(observed)
	}
}

// reportUpdate leaves out what nobody asks about: fields of others, leases of
// their managers, and resource versions.
func (w *kindWatch) reportUpdate(s *entry, before, after any) {
	was, ok := before.(*Observed)
	is, also := after.(*Observed)
	if ok && also && !is.Pending && was.same(is) {
		w.caughtUp(s, is)
		return
	}
	if ok && also && was.lost(is) && w.caughtUp(s, is) {
		w.changed(was)
	}
	w.report(s, after)
}

// resolve records an answer that came after its object, and reports the object. It returns
// false for one about an object that has changed since.
func (w *kindWatch) resolve(observed *Observed) bool {
	key := observed.key()
	w.mu.Lock()
	own, fits := w.wrote[key]
	fits = fits && own.observed.ResourceVersion == observed.ResourceVersion
	if seen := w.current.find(key); seen != nil && !fits {
		fits = seen.ResourceVersion == observed.ResourceVersion
	}
	if fits {
		w.late[key] = observed
	}
	w.mu.Unlock()
	if fits {
		w.changed(observed)
	}
	return fits
}

func (o *Observed) same(other *Observed) bool {
	return o.UID == other.UID && o.Managed == other.Managed && o.Work == other.Work && o.Owned == other.Owned && o.Scaled == other.Scaled &&
		o.Health == other.Health && o.Fault == other.Fault && o.Pending == other.Pending && rawEqual(o.Status, other.Status) &&
		o.DeletionTimestamp.IsZero() == other.DeletionTimestamp.IsZero()
}

// lost reports whether the object named a Work and, as it is now, names none of its
// cluster. One that names another was taken over by that: whose it was is not
// woken up to take it back.
func (o *Observed) lost(is *Observed) bool {
	return o.Work.Name != "" && (is.Work.Name == "" || is.Work.Namespace != o.Work.Namespace)
}

func rawEqual(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Raw, b.Raw)
}

// missing reports whether err means that the member does not serve what was asked
// for, rather than that an object is not there.
func missing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
