package lanes

import (
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/third_party/forked/golang/btree"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// sharing are the lanes of a queue by who their keys belong to, and how they share
// its workers.
type sharing[T comparable] struct {
	// owner returns who a key belongs to; nil if all belong to one.
	owner func(T) string
	// most is how many keys of one owner are with workers at a time; zero means any.
	most  int
	lanes map[string]*lane[T] // what is ready or with a worker
}

// fewestWorkers is how many it takes that nobody has all of them.
const fewestWorkers = 2

// Workers returns how many workers a queue ByNamespace needs to do what that many
// are asked to do: at least two.
func Workers(wanted int) int { return max(wanted, fewestWorkers) }

// ByNamespace is New for a loop with so many workers whose keys belong to
// tenants: the namespaces of its objects. One tenant never has all workers, and of
// keys of the same priority the one goes first whose tenant has the fewest.
// With fewer than two workers there is nothing to share: use Workers.
func ByNamespace(workers int) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := Shared(workqueue.NewTypedWithMaxWaitRateLimiter(limiter, longest), clock.RealClock{}, workers, func(r reconcile.Request) string { return r.Namespace })
		q.counts = watch[reconcile.Request](name)
		return q
	}
}

// Shared is WithClock for so many workers, shared by the owners of the keys.
func Shared[T comparable](limiter workqueue.TypedRateLimiter[T], c clock.WithDelayedExecution, workers int, owner func(T) string) *Queue[T] {
	q := WithClock(limiter, c)
	q.sharing.owner, q.sharing.most = owner, max(workers-1, 1)
	return q
}

// lane is what belongs to one owner.
type lane[T comparable] struct {
	rank *btree.BTree[*item[T]] // ready, by priority and then by age
	age  *btree.BTree[*item[T]] // ready, by age
	busy int                    // keys that workers have
}

func newLane[T comparable]() *lane[T] {
	return &lane[T]{
		rank: btree.New(degree, func(a, b *item[T]) bool {
			return a.priority > b.priority || a.priority == b.priority && a.age < b.age
		}),
		age: btree.New(degree, func(a, b *item[T]) bool { return a.age < b.age }),
	}
}

func (l *lane[T]) put(i *item[T]) {
	l.rank.ReplaceOrInsert(i)
	l.age.ReplaceOrInsert(i)
}

func (l *lane[T]) drop(i *item[T]) {
	l.rank.Delete(i)
	l.age.Delete(i)
}

// before says whether a key of this lane goes before one of another.
func (l *lane[T]) before(other *lane[T], mine, theirs *item[T]) bool {
	switch {
	case mine.priority != theirs.priority:
		return mine.priority > theirs.priority
	case l.busy != other.busy:
		return l.busy < other.busy
	default:
		return mine.age < theirs.age
	}
}

// ownerOf returns who a key belongs to.
func (s *sharing[T]) ownerOf(key T) string {
	if s.owner == nil {
		return ""
	}
	return s.owner(key)
}

// of returns the lane of a key, a new one if there is none.
func (s *sharing[T]) of(key T) *lane[T] {
	owner := s.ownerOf(key)
	l := s.lanes[owner]
	if l == nil {
		l = newLane[T]()
		s.lanes[owner] = l
	}
	return l
}

// pick returns the key to hand out next, nil if there is none that may be: the
// oldest, or the one whose turn it is.
func (s *sharing[T]) pick(oldest bool) *item[T] {
	var best *item[T]
	var from *lane[T]
	for _, l := range s.lanes {
		if s.most > 0 && l.busy >= s.most {
			continue
		}
		order := l.rank
		if oldest {
			order = l.age
		}
		first, some := order.Min()
		if some && (best == nil || oldest && first.age < best.age || !oldest && l.before(from, first, best)) {
			best, from = first, l
		}
	}
	return best
}

// leave ends a worker's hold on a key. An owner who has nothing to do is forgotten.
func (s *sharing[T]) leave(key T) {
	l := s.of(key)
	l.busy--
	if s.owner != nil && l.busy == 0 && l.rank.Len() == 0 {
		delete(s.lanes, s.ownerOf(key))
	}
}

// len returns how many keys are ready.
func (s *sharing[T]) len() int {
	ready := 0
	for _, l := range s.lanes {
		ready += l.rank.Len()
	}
	return ready
}

// clear drops what is ready.
func (s *sharing[T]) clear() {
	for _, l := range s.lanes {
		l.rank.Clear(false)
		l.age.Clear(false)
	}
}
