package fairqueue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"k8s.io/utils/third_party/forked/golang/btree"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// turns is how many handouts a cycle has, in the last of which the oldest key is
// handed out.
const turns = 4

// roomy is the number of keys above which an emptied queue replaces its maps, as
// maps do not shrink.
const roomy = 256

// degree is the degree of the B-trees that order items.
const degree = 32

// Queue hands out keys. Use New, By or ByNamespace.
type Queue[T comparable] struct {
	limiter workqueue.TypedRateLimiter[T]
	clock   clock.WithDelayedExecution
	counts  watcher[T]

	mu      sync.Mutex
	changed *sync.Cond // signalled when a key is ready or done, or the queue shuts down
	items   map[T]*item[T]
	most    int                    // the largest number of items since the maps were made
	busy    map[T]*flow[T]         // keys that workers have, with their flows
	sharing sharing[T]             // items that are ready
	later   *btree.BTree[*item[T]] // items that are not ready yet, by time
	timer   clock.Timer            // fires for the first of later
	timed   time.Time              // when timer fires
	count   uint64                 // items that were given an age
	turn    int                    // place of the next handout in the cycle
	closed  bool
}

// item is a key that is in the queue.
type item[T comparable] struct {
	key      T
	priority int
	// at is when the item becomes ready; zero if it is.
	at time.Time
	// age orders items: the lowest is the oldest.
	age uint64
	// flow is the flow that has the item, once it is ready and no worker has its
	// key; nil before.
	flow *flow[T]
}

var _ priorityqueue.PriorityQueue[string] = (*Queue[string])(nil)

// longest is the longest back-off of a key that failed. Most failures mean that
// the hub is away, and nothing notifies loops when it is back. The default of
// controllers is about a quarter of an hour.
const longest = time.Minute

// New returns an empty queue. It has the type of a controller's option NewQueue.
// Whatever the limiter returns, a key that failed is tried again within a minute.
// The queue is counted in the metrics of controllers' queues under its name; an
// empty name counts nothing.
func New[T comparable](name string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	q := WithClock(workqueue.NewTypedWithMaxWaitRateLimiter(limiter, longest), clock.RealClock{})
	q.counts = watch[T](name)
	return q
}

// WithClock is New with a given clock, and without a name.
func WithClock[T comparable](limiter workqueue.TypedRateLimiter[T], c clock.WithDelayedExecution) *Queue[T] {
	q := &Queue[T]{
		limiter: limiter,
		clock:   c,
		items:   map[T]*item[T]{},
		busy:    map[T]*flow[T]{},
		sharing: newSharing[T](),
		later: btree.New(degree, func(a, b *item[T]) bool {
			return a.at.Before(b.at) || a.at.Equal(b.at) && a.age < b.age
		}),
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// AddWithOpts adds keys. A key that is in the queue already keeps its place, and
// gets the higher of its priorities and the earlier of its times. A key that a
// worker has is handed out again after Done.
func (q *Queue[T]) AddWithOpts(o priorityqueue.AddOpts, keys ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for _, key := range keys {
		after := o.After
		if o.RateLimited {
			if limit := q.limiter.When(key); after == 0 || limit < after {
				after = limit
			}
		}
		q.add(key, ptr.Deref(o.Priority, 0), after)
	}
	q.wind()
}

func (q *Queue[T]) add(key T, priority int, after time.Duration) {
	was, in := q.items[key]
	if in && was.at.IsZero() {
		q.raise(was, priority)
		return
	}
	is := &item[T]{key: key, priority: priority, age: q.next()}
	if after > 0 {
		is.at = q.clock.Now().Add(after)
	}
	if in {
		q.later.Delete(was)
		is.priority = max(priority, was.priority)
		if is.at.After(was.at) {
			is.at = was.at
		}
	}
	if is.at.IsZero() {
		q.counts.ready(key, q.clock.Now())
	} else {
		q.counts.delayed()
	}
	q.items[key] = is
	q.most = max(q.most, len(q.items))
	q.file(is)
}

// raise sets the priority of an item that is ready to the higher of its own and
// another.
func (q *Queue[T]) raise(i *item[T], priority int) {
	switch {
	case priority <= i.priority:
	case i.flow == nil:
		i.priority = priority
	default:
		q.sharing.lift(i, priority)
	}
}

func (q *Queue[T]) next() uint64 {
	q.count++
	return q.count
}

// file puts an item into the structure for its state. An item whose key a worker
// has is in none until the worker is done.
func (q *Queue[T]) file(i *item[T]) {
	switch {
	case !i.at.IsZero():
		q.later.ReplaceOrInsert(i)
	case q.busy[i.key] == nil:
		q.sharing.put(i)
		q.changed.Signal()
	}
}

// wind sets the timer for the first item that is not ready yet.
func (q *Queue[T]) wind() {
	first, some := q.later.Min()
	if q.timer != nil {
		if some && first.at.Equal(q.timed) {
			return
		}
		q.timer.Stop()
		q.timer = nil
	}
	if some {
		q.timed = first.at
		q.timer = q.clock.AfterFunc(first.at.Sub(q.clock.Now()), func() { go q.ripen() })
	}
}

// ripen makes items ready whose time has come.
func (q *Queue[T]) ripen() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil { // the one that fired, or one that was set since: there is never a second
		q.timer.Stop()
		q.timer = nil
	}
	now := q.clock.Now()
	for {
		first, some := q.later.Min()
		if !some || first.at.After(now) {
			break
		}
		q.later.Delete(first)
		first.at, first.age = time.Time{}, q.next()
		q.counts.ready(first.key, now)
		q.file(first)
	}
	q.wind()
}

// GetWithPriority waits for a key and hands it out with its priority. No other
// caller gets the key until Done.
func (q *Queue[T]) GetWithPriority() (key T, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.sharing.dequeue(kindOf(q.turn))
	for i == nil && !q.closed {
		q.changed.Wait()
		i = q.sharing.dequeue(kindOf(q.turn))
	}
	if i == nil {
		return key, 0, true
	}
	q.turn = (q.turn + 1) % turns
	delete(q.items, i.key)
	q.busy[i.key] = i.flow
	q.counts.handed(i.key, q.clock.Now())
	if len(q.items) == 0 && q.most > roomy {
		q.items, q.most = map[T]*item[T]{}, 0
		q.counts.emptied()
	}
	return i.key, i.priority, false
}

// kindOf returns the round of a place in the cycle.
func kindOf(turn int) int {
	if turn == turns-1 {
		return byAge
	}
	return byRank
}

// Done ends the caller's work on a key.
func (q *Queue[T]) Done(key T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.busy[key]; l != nil {
		delete(q.busy, key)
		q.sharing.leave(l)
		q.changed.Signal() // another key of the same owner may wait for this
	}
	q.counts.done(key, q.clock.Now())
	if i, again := q.items[key]; again && i.at.IsZero() {
		q.file(i)
	}
	if q.closed {
		q.changed.Broadcast() // ShutDownWithDrain waits for the last one
	}
}

// Get is GetWithPriority without the priority.
func (q *Queue[T]) Get() (key T, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// Add adds a key with priority 0.
func (q *Queue[T]) Add(key T) { q.AddWithOpts(priorityqueue.AddOpts{}, key) }

// AddAfter adds a key with priority 0 that becomes ready later.
func (q *Queue[T]) AddAfter(key T, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited adds a key with priority 0 after the delay of the rate limiter.
func (q *Queue[T]) AddRateLimited(key T) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// Forget resets the rate limiter's back-off for a key.
func (q *Queue[T]) Forget(key T) { q.limiter.Forget(key) }

// NumRequeues returns how often the rate limiter has seen a key.
func (q *Queue[T]) NumRequeues(key T) int { return q.limiter.NumRequeues(key) }

// Len returns how many keys are ready, including those that wait until another
// key of their owner is done.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sharing.ready
}

// ShutDown stops the queue. It accepts no more keys, and drops those that were
// not handed out: a loop starts again from the objects that exist.
func (q *Queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shut()
}

// ShutDownWithDrain is ShutDown, and waits until all keys that were handed out
// are done.
func (q *Queue[T]) ShutDownWithDrain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shut()
	for len(q.busy) > 0 {
		q.changed.Wait()
	}
}

func (q *Queue[T]) shut() {
	q.closed = true
	q.counts.dropped(len(q.items) - q.later.Len())
	clear(q.items)
	q.sharing.clear()
	q.later.Clear(false)
	q.wind()
	q.changed.Broadcast()
}

// ShuttingDown reports whether ShutDown was called.
func (q *Queue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
