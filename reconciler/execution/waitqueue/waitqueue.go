package waitqueue

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
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
	// OnNamespace is that a namespace was created.
	OnNamespace
	// OnOwner is that another Work releases an object.
	OnOwner
	// OnRights is that an author was granted rights in the member.
	OnRights
)

// Cause is what a Work waits for.
type Cause struct {
	// Event is one of the constants above.
	Event int
	// Kind is set for OnSync and OnOwner.
	Kind schema.GroupVersionKind
	// Namespace is set for OnNamespace.
	Namespace string
	// Object, and Owner, the Work that owns it, are set for OnOwner.
	Object types.NamespacedName
	Owner  client.ObjectKey
	// Lack is set for OnRights.
	Lack impersonation.Lack
}

// SafetyNet is after how long a Work that waits for an event is reconciled in any case.
const SafetyNet = time.Minute

// Blocked is the error of a Work that has to wait for an event. It is no
// failure and changes no condition.
type Blocked struct {
	// Cause is what it waits for.
	Cause Cause
	// After is the longest time to wait; zero leaves that to Queue.Retries.
	After time.Duration
	// Err is why it waits. It is not unwrapped, so that it is not taken for a failure.
	Err error
}

func (b *Blocked) Error() string { return b.Err.Error() }

// IsBlocked reports whether err is a *Blocked.
func IsBlocked(err error) bool { return errors.As(err, new(*Blocked)) }

// Queue holds the Works of one cluster that are due, and those that wait. Use New. It is safe for use by
// several goroutines.
type Queue struct {
	// Retries says how long a Work that failed waits.
	Retries workqueue.TypedRateLimiter[client.ObjectKey]

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the workers run
	waiting map[client.ObjectKey]Cause
	events  int // counts releases, so that none is missed between a pass and its wait
}

// New returns an empty Queue.
func New() *Queue {
	return &Queue{
		Retries: backoff.Retries(),
		waiting: map[client.ObjectKey]Cause{},
	}
}

// Open sets the work queue into which Works are added from now on. Before, Add does
// nothing.
func (q *Queue) Open(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = queue
}

// Add puts a Work in the queue.
func (q *Queue) Add(key client.ObjectKey) {
	if queue := q.current(); queue != nil {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// AddLater adds a Work with a low priority, behind those that were added because they changed.
func (q *Queue) AddLater(key client.ObjectKey) {
	switch queue := q.current().(type) {
	case nil:
	case priorityqueue.PriorityQueue[reconcile.Request]:
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, reconcile.Request{NamespacedName: key})
	default:
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (q *Queue) current() workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue
}

// Begin ends a Work's wait and returns the count of events so far.
func (q *Queue) Begin(key client.ObjectKey) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, key)
	return q.events
}

// Wait makes a Work wait for its cause. It returns false, and does nothing,
// if there has been any event since the given count.
func (q *Queue) Wait(key client.ObjectKey, c Cause, since int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.events != since {
		return false
	}
	q.waiting[key] = c
	return true
}

// Free requeues the Works that wait for the owner to release an
// object. It does not count as an event, as it is called whenever a Work changes: a Work that
// is about to wait for an owner checks once more by itself (owners.Freed).
func (q *Queue) Free(owner client.ObjectKey) {
	q.requeue(false, func(c Cause) bool { return c.Event == OnOwner && c.Owner == owner })
}

// Release requeues the Works whose cause matches, and resets their
// back-off.
func (q *Queue) Release(match func(Cause) bool) { q.requeue(true, match) }

func (q *Queue) requeue(event bool, match func(Cause) bool) {
	var due []client.ObjectKey
	q.mu.Lock()
	if event {
		q.events++
	}
	for key, c := range q.waiting {
		if match(c) {
			delete(q.waiting, key)
			due = append(due, key)
		}
	}
	if len(q.waiting) == 0 {
		q.waiting = map[client.ObjectKey]Cause{} // at the start all Works wait, and a map does not shrink by itself
	}
	q.mu.Unlock()
	for _, key := range due {
		q.Retries.Forget(key)
		q.Add(key)
	}
}

// Waiting counts the Works that wait, by the Event of their cause.
func (q *Queue) Waiting() map[int]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := map[int]int{}
	for _, c := range q.waiting {
		out[c.Event]++
	}
	return out
}

// Forget drops what is kept of a Work.
func (q *Queue) Forget(key client.ObjectKey) {
	q.mu.Lock()
	delete(q.waiting, key)
	q.mu.Unlock()
	q.Retries.Forget(key)
}
