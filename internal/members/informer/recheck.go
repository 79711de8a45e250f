package informer

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// Limits of objects whose status and health are asked for again.
const (
	// mostKept bounds what is kept of them in one member, in bytes, about; those
	// beyond are read from the member when their turn comes.
	mostKept = 16 << 20
	// soonest and latest bound the wait between two questions.
	soonest = 10 * time.Millisecond
	latest  = 30 * time.Second
	// mostReads bounds the objects of one kind that are read from the member at
	// once, and longestRead the time of each: one that hangs keeps one place.
	mostReads   = 16
	longestRead = 30 * time.Second
)

// recheckQueue asks again about objects of one member whose status or health nobody
// could say yet. It never waits for an answer: who is asked says when to come
// back, and what has to be read from the member first is read beside.
type recheckQueue struct {
	interpreter Interpreter
	clock       clock.WithTicker
	wake        chan struct{}

	mu    sync.Mutex
	due   map[question]time.Time
	lines map[*kindWatch]*line
	kept  map[question]keptObject
	size  int
}

// line is who waits for a read of one kind: kinds do not wait for each other.
type line struct {
	waiting []question
	reading map[question]bool // those that wait are not yet, and false
	readers int
}

// question is an object that is asked about.
type question struct {
	watch *kindWatch
	key   types.NamespacedName
}

type keptObject struct {
	object *unstructured.Unstructured
	size   int
}

func newRecheckQueue(interpreter Interpreter, c clock.WithTicker) *recheckQueue {
	return &recheckQueue{
		interpreter: interpreter, clock: c, wake: make(chan struct{}, 1),
		due: map[question]time.Time{}, kept: map[question]keptObject{},
		lines: map[*kindWatch]*line{},
	}
}

// replace keeps an object that will be asked about in place of an older one, if there is space.
func (l *recheckQueue) replace(w *kindWatch, obj *unstructured.Unstructured) {
	q := question{watch: w, key: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	size := weigh(obj.Object)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(q)
	l.store(q, obj, size)
}

// keep keeps an object that was fetched, or it would be fetched for each
// question, unless there is one already: that may be newer.
func (l *recheckQueue) keep(q question, obj *unstructured.Unstructured) {
	size := weigh(obj.Object)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.kept[q]; !ok {
		l.store(q, obj, size)
	}
}

func (l *recheckQueue) store(q question, obj *unstructured.Unstructured, size int) {
	if l.size+size > mostKept {
		return
	}
	l.kept[q] = keptObject{object: obj, size: size}
	l.size += size
}

func (l *recheckQueue) release(q question) {
	l.size -= l.kept[q].size
	delete(l.kept, q)
}

// ask has an object looked at again after a while.
func (l *recheckQueue) ask(w *kindWatch, key types.NamespacedName, after time.Duration) {
	l.at(w, key, min(max(after, soonest), latest))
}

// again has an object looked at again that there is an answer for, or another
// answer, after a while.
func (l *recheckQueue) again(w *kindWatch, observed *Observed) {
	switch {
	case observed.Pending:
		l.ask(w, observed.key(), observed.after)
	case observed.open():
		l.at(w, observed.key(), max(observed.after, time.Second))
	}
}

func (l *recheckQueue) at(w *kindWatch, key types.NamespacedName, after time.Duration) {
	l.mu.Lock()
	l.due[question{watch: w, key: key}] = l.clock.Now().Add(after)
	l.mu.Unlock()
	signal(l.wake)
}

// run asks until ctx ends, and waits for the reads that are under way.
func (l *recheckQueue) run(ctx context.Context) {
	var readers sync.WaitGroup
	defer readers.Wait()
	for ctx.Err() == nil {
		known, lines, wait := l.next()
		for _, of := range lines {
			readers.Go(func() { l.readAll(ctx, of) })
		}
		for q, obj := range known {
			l.recheck(q, obj)
		}
		if len(known) > 0 {
			continue
		}
		timer := l.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// next takes the questions that are due. It returns those about objects that are
// known, puts the others into the lines of their kinds and returns a line for each
// reader that it needs more; and it says how long there is nothing to do.
func (l *recheckQueue) next() (known map[question]*unstructured.Unstructured, lines []*line, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	known, wait = map[question]*unstructured.Unstructured{}, latest
	for q, at := range l.due {
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		of := l.lines[q.watch]
		if of != nil && of.reading[q] {
			continue // again, once that read has ended
		}
		delete(l.due, q)
		if obj := l.kept[q].object; obj != nil {
			known[q] = obj
			continue
		}
		if of == nil {
			of = &line{reading: map[question]bool{}}
			l.lines[q.watch] = of
		}
		if of.join(q) {
			lines = append(lines, of)
		}
	}
	return known, lines, wait
}

// join puts a question into the line, once, and reports whether one more reader may
// come.
func (of *line) join(q question) bool {
	if _, waits := of.reading[q]; waits {
		return false
	}
	of.reading[q] = false
	of.waiting = append(of.waiting, q)
	if of.readers == mostReads {
		return false
	}
	of.readers++
	return true
}

// readAll reads what waits in a line until nobody does.
func (l *recheckQueue) readAll(ctx context.Context, of *line) {
	for {
		q, obj, ok := l.pop(ctx, of)
		switch {
		case !ok:
			return
		case obj != nil: // it was shown meanwhile
			l.recheck(q, obj)
		default:
			l.read(ctx, q)
		}
		l.mu.Lock()
		delete(of.reading, q)
		_, again := l.due[q]
		l.mu.Unlock()
		if again {
			signal(l.wake)
		}
	}
}

// pop takes the first question out of a line, with its object if that is known. It
// returns false when the reader is to go.
func (l *recheckQueue) pop(ctx context.Context, of *line) (q question, obj *unstructured.Unstructured, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(of.waiting) == 0 || ctx.Err() != nil {
		of.readers--
		return q, nil, false
	}
	q = of.waiting[0]
	of.waiting = of.waiting[1:]
	of.reading[q] = true
	return q, l.kept[q].object, true
}

// read asks about one object that has to be read first. It takes so long as one
// read may, and no longer.
func (l *recheckQueue) read(ctx context.Context, q question) {
	short, cancel := context.WithTimeout(ctx, longestRead)
	defer cancel()
	obj, err := fetch(short, q.watch, q.key)
	switch {
	case err == nil:
		l.recheck(q, obj)
	case !apierrors.IsNotFound(err) && !missing(err):
		l.ask(q.watch, q.key, latest)
	}
}

// recheck asks about one object.
func (l *recheckQueue) recheck(q question, obj *unstructured.Unstructured) {
	observed, err := trim(obj, l.interpreter)
	if err != nil {
		l.drop(q, obj)
		return
	}
	if observed.Pending {
		l.keep(q, obj)
		l.ask(q.watch, q.key, observed.after)
		return
	}
	l.drop(q, obj)
	if q.watch.resolve(observed) {
		l.again(q.watch, observed)
	} else if now, _ := q.watch.read(q.key); now != nil && now.open() {
		l.at(q.watch, q.key, max(now.after, time.Second)) // it has changed since, or the watch is behind
	}
}

// drop lets go of an object, unless it has changed since.
func (l *recheckQueue) drop(q question, obj *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept[q].object == obj {
		l.release(q)
	}
}

// fetch reads an object from the member.
func fetch(ctx context.Context, w *kindWatch, key types.NamespacedName) (*unstructured.Unstructured, error) {
	kind, err := w.served.lookup(ctx, w.gvk)
	if err != nil {
		return nil, err
	}
	var resource dynamic.ResourceInterface = w.client.Resource(kind.Resource)
	if kind.Namespaced {
		resource = w.client.Resource(kind.Resource).Namespace(key.Namespace)
	}
	return resource.Get(ctx, key.Name, metav1.GetOptions{})
}

// weigh returns about how many bytes a value takes.
func weigh(value any) int {
	const cell = 16
	switch v := value.(type) {
	case map[string]any:
		size := 3 * cell
		for key, e := range v {
			size += 2*cell + len(key) + weigh(e)
		}
		return size
	case []any:
		size := 2 * cell
		for _, e := range v {
			size += weigh(e)
		}
		return size
	case string:
		return cell + len(v)
	default:
		return cell
	}
}
