package sight

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
	// mostHeld bounds what is kept of them in one member, in bytes, about; those
	// beyond are read from the member when their turn comes.
	mostHeld = 16 << 20
	// soonest and latest bound the wait between two questions.
	soonest = 10 * time.Millisecond
	latest  = 30 * time.Second
)

// later asks again about objects of one member whose status or health nobody
// could say yet. It never waits for an answer: who is asked says when to come
// back.
type later struct {
	interpreter Interpreter
	clock       clock.WithTicker
	wake        chan struct{}

	mu   sync.Mutex
	due  map[question]time.Time
	kept map[question]held
	size int
}

// question is an object that is asked about.
type question struct {
	watch *kindWatch
	key   types.NamespacedName
}

type held struct {
	object *unstructured.Unstructured
	size   int
}

func newLater(interpreter Interpreter, c clock.WithTicker) *later {
	return &later{
		interpreter: interpreter, clock: c, wake: make(chan struct{}, 1),
		due: map[question]time.Time{}, kept: map[question]held{},
	}
}

// hold keeps an object that will be asked about, if there is room.
func (l *later) hold(w *kindWatch, obj *unstructured.Unstructured) {
	q := question{watch: w, key: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	size := weigh(obj.Object)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(q)
	if l.size+size > mostHeld {
		return
	}
	l.kept[q] = held{object: obj, size: size}
	l.size += size
}

func (l *later) release(q question) {
	l.size -= l.kept[q].size
	delete(l.kept, q)
}

// ask has an object looked at again after a while.
func (l *later) ask(w *kindWatch, key types.NamespacedName, after time.Duration) {
	l.at(w, key, min(max(after, soonest), latest))
}

// again has an object looked at again that there is an answer for, or another
// answer, after a while.
func (l *later) again(w *kindWatch, observed *Observed) {
	switch {
	case observed.Pending:
		l.ask(w, observed.key(), observed.after)
	case observed.open():
		l.at(w, observed.key(), max(observed.after, time.Second))
	}
}

func (l *later) at(w *kindWatch, key types.NamespacedName, after time.Duration) {
	l.mu.Lock()
	l.due[question{watch: w, key: key}] = l.clock.Now().Add(after)
	l.mu.Unlock()
	signal(l.wake)
}

// run asks until ctx ends.
func (l *later) run(ctx context.Context) {
	for ctx.Err() == nil {
		questions, wait := l.next()
		for _, q := range questions {
			l.look(ctx, q)
		}
		if len(questions) > 0 {
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

// next takes the questions that are due, and says how long there is none.
func (l *later) next() ([]question, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, wait := l.clock.Now(), latest
	var out []question
	for q, at := range l.due {
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		out = append(out, q)
		delete(l.due, q)
	}
	return out, wait
}

// look asks about one object.
func (l *later) look(ctx context.Context, q question) {
	l.mu.Lock()
	obj := l.kept[q].object
	l.mu.Unlock()
	if obj == nil {
		var err error
		if obj, err = fetch(ctx, q.watch, q.key); err != nil {
			if !apierrors.IsNotFound(err) && !missing(err) {
				l.ask(q.watch, q.key, latest)
			}
			return
		}
	}
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

// keep keeps an object that was fetched, or it would be fetched for each
// question, unless there is one already: that may be newer.
func (l *later) keep(q question, obj *unstructured.Unstructured) {
	l.mu.Lock()
	_, ok := l.kept[q]
	l.mu.Unlock()
	if !ok {
		l.hold(q.watch, obj)
	}
}

// drop lets go of an object, unless it has changed since.
func (l *later) drop(q question, obj *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept[q].object == obj {
		l.release(q)
	}
}

// fetch reads an object from the member.
func fetch(ctx context.Context, w *kindWatch, key types.NamespacedName) (*unstructured.Unstructured, error) {
	kind, err := w.lookup(ctx, w.gvk)
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
