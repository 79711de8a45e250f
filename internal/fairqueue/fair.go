package fairqueue

import (
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/third_party/forked/golang/btree"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// sharing are the flows of a queue by who their keys belong to, and how they share
// its workers.
type sharing[T comparable] struct {
	// owner returns who a key belongs to; nil if all belong to one.
	owner func(T) string
	// most is how many keys of one owner are with workers at a time; zero means any.
	most   int
	flows  map[string]*flow[T] // what is ready or with a worker
	rounds rounds[T]
	count  uint64       // of places taken in the rounds
	ready  int          // keys in flows
	spare  []*flow[T]   // of owners who are gone: empty
	nodes  *freeList[T] // of the trees
}

type freeList[T comparable] = btree.FreeList[*item[T]]

// fewestWorkers is how many it takes that nobody has all of them.
const fewestWorkers = 2

// spares is how many flows are kept for the next owners who come. Most queues
// are short: owners come and go with each key.
const spares = 16

// Workers returns how many workers a queue ByNamespace needs to do what that many
// are asked to do: at least two.
func Workers(wanted int) int { return max(wanted, fewestWorkers) }

// NewQueue has the form of a controller's option NewQueue.
type NewQueue[T comparable] = func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T]

// ByNamespace is By for a loop whose keys belong to tenants by the namespaces of
// its objects. Those without a namespace belong to one more.
func ByNamespace(workers int) NewQueue[reconcile.Request] {
	return By(workers, func(r reconcile.Request) string { return r.Namespace })
}

// By is New for a loop with so many workers, whose keys belong to whom owner
// says. One owner never has all workers; of keys of the same priority the one goes
// first whose owner has the fewest of them, and then the one whose turn it is.
// With fewer than two workers there are turns alone: use Workers. The owner is
// asked once for each time that a key becomes ready, and has to answer at once,
// from any goroutine, without use of the queue.
func By[T comparable](workers int, owner func(T) string) NewQueue[T] {
	return func(name string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
		q := Shared(workqueue.NewTypedWithMaxWaitRateLimiter(limiter, longest), clock.RealClock{}, workers, owner)
		q.counts = watch[T](name)
		return q
	}
}

// Shared is WithClock for so many workers, shared by the owners of the keys.
func Shared[T comparable](limiter workqueue.TypedRateLimiter[T], c clock.WithDelayedExecution, workers int, owner func(T) string) *Queue[T] {
	q := WithClock(limiter, c)
	q.sharing.owner, q.sharing.most = owner, max(workers-1, 1)
	return q
}

func newSharing[T comparable]() sharing[T] {
	return sharing[T]{flows: map[string]*flow[T]{}, rounds: newRounds[T](), nodes: btree.NewFreeList[*item[T]](btree.DefaultFreeListSize)}
}

// flow is what belongs to one owner.
type flow[T comparable] struct {
	owner string
	rank  *btree.BTree[*item[T]] // ready, by priority and then by age
	age   *btree.BTree[*item[T]] // ready, by age
	busy  int                    // keys that workers have

	priority int // of the first by rank, if any
	// turns is its place in each round: the lower, the sooner.
	turns [kinds]uint64
	// at is where it is in the heap of each round; negative if in none.
	at [kinds]int
}

// of returns the flow of a key, a new one if there is none.
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

// flow returns one that nobody has.
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

// put adds what is ready to the flow of its owner.
func (s *sharing[T]) put(i *item[T]) {
	i.flow = s.of(i.key)
	i.flow.rank.ReplaceOrInsert(i)
	i.flow.age.ReplaceOrInsert(i)
	s.ready++
	s.reorder(i.flow)
}

// lift gives what is ready a higher priority.
func (s *sharing[T]) lift(i *item[T], priority int) {
	i.flow.rank.Delete(i)
	i.priority = priority
	i.flow.rank.ReplaceOrInsert(i)
	s.reorder(i.flow)
}

// reorder puts a flow where it belongs in the rounds, by what changed of it: there
// are those that have something ready and may have one more worker.
func (s *sharing[T]) reorder(f *flow[T]) {
	first, some := f.rank.Min()
	if some {
		f.priority = first.priority
	}
	s.rounds.place(f, some && (s.most == 0 || f.busy < s.most))
}

// dequeue takes out the key that goes next, nil if there is none that may: the oldest
// of the owner whose turn it is for that, or the most urgent.
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

// leave ends a worker's hold on a key of a flow. An owner who has nothing to do is
// forgotten.
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

// clear drops what is ready.
func (s *sharing[T]) clear() {
	s.ready = 0
	for _, f := range s.flows {
		f.rank.Clear(false)
		f.age.Clear(false)
		s.reorder(f)
	}
}
