package fairqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
)

// many returns n keys of one owner.
func many(owner string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s/%d", owner, i+1))
	}
	return out
}

// TestALongQueueDelaysNobody checks that the keys of one tenant, however many
// there are and however quick each is, do not make others wait.
func TestALongQueueDelaysNobody(t *testing.T) {
	cases := map[string]struct {
		late func(q *fairqueue.Queue[string]) // adds keys behind the long line
		most int                              // handouts until the other tenant's key
	}{
		"of the same priority: next, but for the turns of the other": {
			func(q *fairqueue.Queue[string]) { add(q, 0, "victim/1") }, 3,
		},
		"less urgent: at the next turn of the oldest but one": {
			func(q *fairqueue.Queue[string]) { add(q, -100, "victim/1") }, 8,
		},
		"without a namespace: one owner like the others": {
			func(q *fairqueue.Queue[string]) { add(q, 0, "/victim") }, 3,
		},
		"behind many that each have one key: once around": {
			func(q *fairqueue.Queue[string]) {
				for i := range 10 {
					add(q, 0, fmt.Sprintf("other%d/1", i))
				}
				add(q, 0, "victim/1")
			}, 14,
		},
	}
	for name, tc := range cases {
		for _, before := range []int{0, 1, 2, 3, 4} { // handouts before, as the turn of the oldest may be at any time
			t.Run(fmt.Sprint(name, " after ", before), func(t *testing.T) {
				q := shared(8)
				add(q, 0, many("red", 1200)...)
				for range before {
					key, _ := q.Get()
					q.Done(key)
				}
				tc.late(q)
				var out []string
				for len(out) == 0 || !strings.Contains(out[len(out)-1], "victim") {
					key, _ := q.Get()
					q.Done(key)
					out = append(out, key)
				}
				if len(out) > tc.most {
					t.Errorf("handed out as number %d, want at most %d", len(out), tc.most)
				}
			})
		}
	}
}

// TestWhoComesIsNext checks that, while workers have keys of the long line, a new
// key of another tenant is the next one.
func TestWhoComesIsNext(t *testing.T) {
	q := shared(8)
	add(q, 0, many("red", 1200)...)
	_ = hand(q, 4)
	add(q, 0, "victim/1")
	if diff := cmp.Diff("victim/1", hand(q, 1)); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}
}

func TestTurns(t *testing.T) {
	cases := map[string]struct {
		fill func(q *fairqueue.Queue[string])
		want string
	}{
		"owners take turns, and the fourth key is for the one who waits for the turn of the oldest": {
			func(q *fairqueue.Queue[string]) { add(q, 0, "a/1", "a/2", "a/3", "a/4", "b/1", "b/2", "c/1") },
			"a/1 b/1 c/1 a/2 b/2 a/3 a/4",
		},
		"what is urgent goes first, whoever had it last": {
			func(q *fairqueue.Queue[string]) {
				add(q, 0, "a/1", "b/1", "b/2")
				add(q, 5, "a/2", "a/3")
			}, "a/2 a/3 b/1 a/1 b/2",
		},
		"the turns of the oldest go around too": {
			func(q *fairqueue.Queue[string]) {
				add(q, -100, "a/low1", "a/low2", "a/low3", "b/low1", "c/low1")
				add(q, 0, many("d", 9)...)
			}, "d/1 d/2 d/3 a/low1 d/4 d/5 d/6 b/low1 d/7 d/8 d/9 c/low1 a/low2 a/low3",
		},
		"a key that is added again and again keeps the place of its owner": {
			func(q *fairqueue.Queue[string]) {
				add(q, 0, "a/1", "b/1")
				add(q, 0, "a/1")
				add(q, 3, "a/1", "b/1")
			}, "a/1 b/1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := shared(8)
			tc.fill(q)
			if diff := cmp.Diff(tc.want, drain(q)); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheOwnerMayChange checks that the owner of a key when it became ready
// counts, whatever is known later.
func TestTheOwnerMayChange(t *testing.T) {
	owners := 0
	q := fairqueue.Shared(workqueue.DefaultTypedControllerRateLimiter[string](), clocktesting.NewFakeClock(time.Unix(0, 0)), 3, func(string) string {
		owners++
		return fmt.Sprint(owners)
	})
	add(q, 0, "x", "y")
	add(q, 1, "y", "x")
	first, _ := q.Get()
	add(q, 0, first)
	second, _ := q.Get()
	q.Done(first)
	q.Done(second)
	if got := strings.Join([]string{first, second, drain(q)}, " "); got != "y x y" && got != "x y x" {
		t.Errorf("handed out %q", got)
	}
	if q.Len() != 0 {
		t.Errorf("%d are left", q.Len())
	}
}

// model records what a queue was given, and what it handed out.
type model struct {
	waiting map[string]bool // ready, and without a worker
	again   map[string]bool // added while a worker has it
	working map[string]bool
	since   map[string]int // by waiting key: the number of handouts before it was added
	before  map[string]int // by waiting key: how many of its owner's keys are older
}

func ownerOf(key string) string {
	owner, _, _ := strings.Cut(key, "/")
	return owner
}

func (m *model) add(key string, handouts int) {
	if m.waiting[key] || m.again[key] {
		return
	}
	m.since[key], m.before[key] = handouts, 0
	for _, added := range []map[string]bool{m.waiting, m.again} {
		for other := range added {
			if ownerOf(other) == ownerOf(key) {
				m.before[key]++
			}
		}
	}
	if m.working[key] {
		m.again[key] = true
	} else {
		m.waiting[key] = true
	}
}

func (m *model) done(key string, handouts int) {
	delete(m.working, key)
	if m.again[key] {
		delete(m.again, key)
		m.waiting[key], m.since[key] = true, handouts
	}
}

// TestFairnessOfAnything checks that, whatever is added, in any order and with
// any priority, nothing is lost or handed out twice, no owner has all workers,
// and a key with n older ones of its owner is handed out within 4m(n+1) handouts
// among m owners.
func TestFairnessOfAnything(t *testing.T) {
	const owners, workers = 5, 4
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7))
		q := shared(workers)
		m := &model{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]int{}}
		flood := fmt.Sprint(random.IntN(owners))
		add(q, random.IntN(9), many(flood, 100)...)
		for _, key := range many(flood, 100) {
			m.add(key, 0)
		}
		var hands []string
		for handouts := 0; handouts < 1500; {
			for range random.IntN(3) {
				key := fmt.Sprintf("%d/%d", random.IntN(owners), random.IntN(30))
				add(q, random.IntN(5), key)
				m.add(key, handouts)
			}
			if len(hands) == workers-1 || len(hands) > 0 && (q.Len() == 0 || random.IntN(3) == 0) {
				i := random.IntN(len(hands))
				q.Done(hands[i])
				m.done(hands[i], handouts)
				hands = slices.Delete(hands, i, i+1)
			}
			if q.Len() != len(m.waiting) {
				t.Fatalf("seed %d: %d wait, want %d", seed, q.Len(), len(m.waiting))
			}
			if q.Len() == 0 {
				continue
			}
			key, _ := q.Get()
			handouts++
			if !m.waiting[key] || m.working[key] {
				t.Fatalf("seed %d: %s was handed out, and did not wait", seed, key)
			}
			if took, most := handouts-m.since[key], 4*owners*(m.before[key]+1); took > most {
				t.Fatalf("seed %d: %s was served as number %d with %d before it, want at most %d", seed, key, took, m.before[key], most)
			}
			delete(m.waiting, key)
			m.working[key] = true
			hands = append(hands, key)
		}
	}
}

// BenchmarkQueue measures the cost of a key for a number of owners with a number
// of keys each.
func BenchmarkQueue(b *testing.B) {
	for _, of := range [][2]int{{1, 1}, {1, 10000}, {1000, 10}} {
		b.Run(fmt.Sprintf("%d owners with %d", of[0], of[1]), func(b *testing.B) {
			q := shared(8)
			for i := range of[0] {
				add(q, 0, many(fmt.Sprint("owner", i), of[1])...)
			}
			b.ReportAllocs()
			for b.Loop() {
				key, _ := q.Get()
				q.Done(key)
				q.Add(key)
			}
		})
	}
}
