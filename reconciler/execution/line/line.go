package line

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/reconciler/execution/acting"
	"github.com/flotilla-io/flotilla/reconciler/execution/pace"
)

// What Works wait for.
const (
	// OnRetry is nothing but time.
	OnRetry = iota
	// OnProof is that the member is connected and is the registered cluster.
	OnProof
	// OnSync is that the watch of a kind has seen the whole list.
	OnSync
	// OnKinds is that the member may serve other kinds.
	OnKinds
	// OnNamespace is that a namespace was made.
	OnNamespace
	// OnHolder is that another Work lets go of an object.
	OnHolder
	// OnRights is that somebody was given rights.
	OnRights
)

// Cause is what a Work waits for.
type Cause struct {
	// Event is one of the constants above.
	Event int
	// Kind goes with OnSync and OnHolder.
	Kind schema.GroupVersionKind
	// Namespace goes with OnNamespace.
	Namespace string
	// Object and Holder, the Work that has it, go with OnHolder.
	Object types.NamespacedName
	Holder client.ObjectKey
	// Lack goes with OnRights.
	Lack acting.Lack
}

// Line is where the Works of one lane queue up, or wait. Use New. It is safe for use by
// several goroutines.
type Line struct {
	// Retries says how long a Work that failed waits.
	Retries workqueue.TypedRateLimiter[client.ObjectKey]

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the workers run
	waiting map[client.ObjectKey]Cause
	events  int // counts releases, so that none is missed between a look and a wait
}

// New returns a Line that nobody waits in.
func New() *Line {
	return &Line{
		Retries: pace.Retries(),
		waiting: map[client.ObjectKey]Cause{},
	}
}

// Open has those who come from now on wait in the queue of the lane's workers. Before, nobody
// is looked at.
func (l *Line) Open(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = queue
}

// Add puts a Work in the queue.
func (l *Line) Add(key client.ObjectKey) {
	if queue := l.current(); queue != nil {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// AddLater puts a Work behind those that were added because they changed.
func (l *Line) AddLater(key client.ObjectKey) {
	switch queue := l.current().(type) {
	case nil:
	case priorityqueue.PriorityQueue[reconcile.Request]:
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, reconcile.Request{NamespacedName: key})
	default:
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (l *Line) current() workqueue.TypedRateLimitingInterface[reconcile.Request] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue
}

// Begin ends a Work's wait and returns the count of events so far.
func (l *Line) Begin(key client.ObjectKey) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, key)
	return l.events
}

// Wait has a Work looked at again when its cause comes to pass. It returns false
// if anything has come to pass since the given count.
func (l *Line) Wait(key client.ObjectKey, c Cause, since int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events != since {
		return false
	}
	l.waiting[key] = c
	return true
}

// Free puts the Works back in the queue that wait for another to let go of an
// object. Who is about to wait looks again by itself: this is no event for the
// others, since Works change all the time.
func (l *Line) Free(holder client.ObjectKey) {
	l.requeue(false, func(c Cause) bool { return c.Event == OnHolder && c.Holder == holder })
}

// Release puts the Works back in the queue whose cause matches, as if they had
// never failed.
func (l *Line) Release(match func(Cause) bool) { l.requeue(true, match) }

func (l *Line) requeue(event bool, match func(Cause) bool) {
	var due []client.ObjectKey
	l.mu.Lock()
	if event {
		l.events++
	}
	for key, c := range l.waiting {
		if match(c) {
			delete(l.waiting, key)
			due = append(due, key)
		}
	}
	if len(l.waiting) == 0 {
		l.waiting = map[client.ObjectKey]Cause{} // all wait when a lane starts, and maps do not shrink
	}
	l.mu.Unlock()
	for _, key := range due {
		l.Retries.Forget(key)
		l.Add(key)
	}
}

// Forget drops what is kept of a Work.
func (l *Line) Forget(key client.ObjectKey) {
	l.mu.Lock()
	delete(l.waiting, key)
	l.mu.Unlock()
	l.Retries.Forget(key)
}
