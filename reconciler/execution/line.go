package execution

import (
	"slices"
	"strings"
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

// Events in a member that Works wait for.
const (
	onRetry     = iota // nothing but time
	onProof            // the member is connected and is the registered cluster
	onSync             // the watch of a kind has seen the whole list
	onKinds            // the member may serve other kinds
	onNamespace        // a namespace was made
	onHolder           // another Work lets go of an object
	onRights           // somebody was given rights
)

// cause is what a Work waits for.
type cause struct {
	event     int
	kind      schema.GroupVersionKind // onSync, onHolder
	namespace string                  // onNamespace
	object    types.NamespacedName    // onHolder
	holder    client.ObjectKey        // onHolder
	lack      acting.Lack             // onRights
}

// line is where the Works of one lane queue up, or wait for what they need.
type line struct {
	retries workqueue.TypedRateLimiter[client.ObjectKey]

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the workers run
	waiting map[client.ObjectKey]cause
	events  int // counts releases, so that none is missed between a look and a wait
}

func newLine() *line {
	return &line{
		retries: pace.Retries(),
		waiting: map[client.ObjectKey]cause{},
	}
}

func (l *line) open(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = queue
}

func (l *line) add(key client.ObjectKey) {
	if queue := l.current(); queue != nil {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// addLater puts a Work behind those that were added because they changed.
func (l *line) addLater(key client.ObjectKey) {
	switch queue := l.current().(type) {
	case nil:
	case priorityqueue.PriorityQueue[reconcile.Request]:
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, reconcile.Request{NamespacedName: key})
	default:
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (l *line) current() workqueue.TypedRateLimitingInterface[reconcile.Request] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue
}

// begin ends a Work's wait and returns the count of events so far.
func (l *line) begin(key client.ObjectKey) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, key)
	return l.events
}

// wait has a Work looked at again when its cause comes to pass. It returns false
// if anything has come to pass since the given count.
func (l *line) wait(key client.ObjectKey, c cause, since int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events != since {
		return false
	}
	l.waiting[key] = c
	return true
}

// waitingFor returns the Works whose cause matches.
func (l *line) waitingFor(match func(cause) bool) []client.ObjectKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []client.ObjectKey
	for key, c := range l.waiting {
		if match(c) {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// free puts the Works back in the queue that wait for another to let go of an
// object. Who is about to wait looks again by itself: this is no event for the
// others, since Works change all the time.
func (l *line) free(holder client.ObjectKey) {
	l.requeue(false, func(c cause) bool { return c.event == onHolder && c.holder == holder })
}

// release puts the Works back in the queue whose cause matches, as if they had
// never failed.
func (l *line) release(match func(cause) bool) { l.requeue(true, match) }

func (l *line) requeue(event bool, match func(cause) bool) {
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
		l.waiting = map[client.ObjectKey]cause{} // all wait when a lane starts, and maps do not shrink
	}
	l.mu.Unlock()
	for _, key := range due {
		l.retries.Forget(key)
		l.add(key)
	}
}

func (l *line) forget(key client.ObjectKey) {
	l.mu.Lock()
	delete(l.waiting, key)
	l.mu.Unlock()
	l.retries.Forget(key)
}
