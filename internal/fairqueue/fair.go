package fairqueue

import (
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/third_party/forked/golang/btree"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// sharing holds the flows of a queue, and decides how their owners share its
// workers.
type sharing[T comparable] struct {
	// owner returns the owner of a key; nil if all keys have the same.
	owner func(T) string
	// most is how many keys of one owner workers may have at a time; zero means
	// any number.
	most   int
	flows  map[string]*flow[T] // by owner: those with keys that are ready or with a worker
	rounds rounds[T]
	count  uint64       // turns that were taken
	ready  int          // keys in flows
	spare  []*flow[T]   // empty flows, for reuse
	nodes  *freeList[T] // of the flows' trees
}

type freeList[T comparable] = btree.FreeList[*item[T]]

// fewestWorkers is with how many workers one owner need not have all of them.
const fewestWorkers = 2

// spares is how many empty flows are kept for reuse. Most queues are short, so
// owners come and go with each key.
const spares = 16

// Workers returns how many workers a queue ByNamespace should have where wanted
// are configured: at least two, so that no tenant can have all of them.
func Workers(wanted int) int { return max(wanted, fewestWorkers) }

// NewQueue is the type of a controller's option NewQueue.
type NewQueue[T comparable] = func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T]

// ByNamespace is By for a loop whose keys belong to the namespaces of its
// objects. Cluster-scoped objects share one owner.
func ByNamespace(workers int) NewQueue[reconcile.Request] {
	return By(workers, func(r reconcile.Request) string { return r.Namespace })
}

// By is New for a loop with a number of workers, whose keys have owners. One
// owner never has all workers. Of keys of the same priority, that of the owner
// with the fewest workers goes first, and then the one whose turn it is. With
// fewer than two workers there are turns only: use Workers. owner is called each
// time that a key becomes ready; it must return at once, may be called from any
// goroutine, and must not use the queue, which is locked.
func By[T comparable](workers int, owner func(T) string) NewQueue[T] {
	return func(name string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
		q := Shared(workqueue.NewTypedWithMaxWaitRateLimiter(limiter, longest), clock.RealClock{}, workers, owner)
		q.counts = watch[T](name)
		return q
	}
}

// Shared is WithClock for a number of workers, which the owners of keys share.
func Shared[T comparable](limiter workqueue.TypedRateLimiter[T], c clock.WithDelayedExecution, workers int, owner func(T) string) *Queue[T] {
	q := WithClock(limiter, c)
	q.sharing.owner, q.sharing.most = owner, max(workers-1, 1)
	return q
}

func newSharing[T comparable]() sharing[T] {
	return sharing[T]{flows: map[string]*flow[T]{}, rounds: newRounds[T](), nodes: btree.NewFreeList[*item[T]](btree.DefaultFreeListSize)}
}

// flow holds the keys of one owner.
type flow[T comparable] struct {
	owner string
	rank  *btree.BTree[*item[T]] // ready keys, by priority and then by age
	age   *btree.BTree[*item[T]] // ready keys, by age
	busy  int                    // keys that workers have

	priority int // of the first key in rank, if any
	// turns is its place in each round: the lowest goes first.
	turns [kinds]uint64
	// at is its index in the heap of each round; negative if it takes no part.
	at [kinds]int
}

// of returns the flow of a key's owner, and makes one if there is none.
func (s *sharing[T]) of(key T) *flow[T] {
	var owner string
	if s.owner != nil {
		owner = s.owner(key)
	}
	f := s.flows[owner]
	if f == nil {
		f = s.flow()
		s.count++
		f.owner, f.turns = owner, [kinds]uint64{s.count, s.count}
		s.flows[owner] = f
	}
	return f
}

// flow returns an unused flow.
func (s *sharing[T]) flow() *flow[T] {
	if last := len(s.spare) - 1; last >= 0 {
		f := s.spare[last]
		s.spare = s.spare[:last]
		return f
	}
	return &flow[T]{
		rank: btree.NewWithFreeList(degree, func(a, b *item[T]) bool {
			return a.priority > b.priority || a.priority == b.priority && a.age < b.age
		}, s.nodes),
		age: btree.NewWithFreeList(degree, func(a, b *item[T]) bool { return a.age < b.age }, s.nodes),
		at:  [kinds]int{-1, -1},
	}
}

// put adds a key that is ready to the flow of its owner.
func (s *sharing[T]) put(i *item[T]) {
	i.flow = s.of(i.key)
	i.flow.rank.ReplaceOrInsert(i)
	i.flow.age.ReplaceOrInsert(i)
	s.ready++
	s.reorder(i.flow)
}

// lift raises the priority of a key that is ready.
func (s *sharing[T]) lift(i *item[T], priority int) {
	i.flow.rank.Delete(i)
	i.priority = priority
	i.flow.rank.ReplaceOrInsert(i)
	s.reorder(i.flow)
}

// reorder updates a flow's place in the rounds after it has changed. A flow takes
// part while it has a ready key and may have another worker.
func (s *sharing[T]) reorder(f *flow[T]) {
	first, some := f.rank.Min()
	if some {
		f.priority = first.priority
	}
	s.rounds.place(f, some && (s.most == 0 || f.busy < s.most))
}

// dequeue removes and returns the key that goes next; nil if none may. The round
// kind decides which flow it comes from, and whether it is the flow's oldest key
// or its most urgent one.
func (s *sharing[T]) dequeue(kind int) *item[T] {
	f := s.rounds.first(kind)
	if f == nil {
		return nil
	}
	order := f.rank
	if kind == byAge {
		order = f.age
	}
	i, _ := order.Min()
	f.rank.Delete(i)
	f.age.Delete(i)
	s.ready--
	s.count++
	f.turns[byRank] = s.count
	if kind == byAge {
		f.turns[byAge] = s.count
	}
	f.busy++
	s.reorder(f)
	return i
}

// leave records that a worker is done with a key of a flow. A flow with nothing
// left to do is dropped.
func (s *sharing[T]) leave(f *flow[T]) {
	f.busy--
	s.reorder(f)
	if s.owner == nil || f.busy > 0 || f.rank.Len() > 0 {
		return
	}
	delete(s.flows, f.owner)
	if len(s.spare) < spares {
		s.spare = append(s.spare, f)
	}
}

// clear drops all keys that are ready.
func (s *sharing[T]) clear() {
	s.ready = 0
	for _, f := range s.flows {
		f.rank.Clear(false)
		f.age.Clear(false)
		s.reorder(f)
	}
}
