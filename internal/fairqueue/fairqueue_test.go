package fairqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
)

func queue() (*fairqueue.Queue[string], *clocktesting.FakeClock) {
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)
	return fairqueue.WithClock(limiter, c), c
}

func add(q *fairqueue.Queue[string], priority int, keys ...string) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
}

// drain hands out all keys that are ready.
func drain(q *fairqueue.Queue[string]) string {
	var out []string
	for q.Len() > 0 {
		key, _ := q.Get()
		q.Done(key)
		out = append(out, key)
	}
	return strings.Join(out, " ")
}

func TestOrder(t *testing.T) {
	cases := map[string]struct {
		fill func(q *fairqueue.Queue[string])
		want string
	}{
		"first come, first served": {
			func(q *fairqueue.Queue[string]) { add(q, 0, "a", "b", "c") }, "a b c",
		},
		"three of the highest priority, then the oldest": {
			func(q *fairqueue.Queue[string]) {
				add(q, -100, "low1", "low2")
				add(q, 0, "a", "b", "c", "d", "e", "f", "g")
			}, "a b c low1 d e f low2 g",
		},
		"added twice is handed out once": {
			func(q *fairqueue.Queue[string]) { add(q, 0, "a", "b", "a") }, "a b",
		},
		"a higher priority lifts a key, and it keeps its age": {
			func(q *fairqueue.Queue[string]) {
				add(q, 0, "a", "b")
				add(q, 7, "x")
				add(q, 7, "b")
			}, "b x a",
		},
		"a lower priority changes nothing": {
			func(q *fairqueue.Queue[string]) {
				add(q, 0, "a")
				add(q, 5, "b")
				add(q, -100, "b")
			}, "b a",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, _ := queue()
			tc.fill(q)
			if diff := cmp.Diff(tc.want, drain(q)); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAQueueThatWasLong checks that a queue that has replaced its maps works as
// before.
func TestAQueueThatWasLong(t *testing.T) {
	q, clock := queue()
	for i := range 1000 {
		add(q, 0, fmt.Sprint(i))
	}
	first, _ := q.Get() // not done during the whole test
	drain(q)
	add(q, 0, first, "a")
	q.AddAfter("b", time.Second)
	before := drain(q)
	q.Done(first)
	clock.Step(time.Second)
	await(t, q, 2)
	if got := before + ", " + drain(q); got != "a, "+first+" b" {
		t.Errorf("handed out %q, want %q", got, "a, "+first+" b")
	}
}

func TestAKeyIsWithOneWorker(t *testing.T) {
	q, _ := queue()
	q.Add("a")
	key, priority, _ := q.GetWithPriority()
	add(q, 3, "a")
	got := []any{key, priority, q.Len()}
	q.Done("a")
	key, priority, _ = q.GetWithPriority()
	got = append(got, key, priority, q.Len())
	if diff := cmp.Diff([]any{"a", 0, 0, "a", 3, 0}, got); diff != "" {
		t.Errorf("key, priority, ready; done; key, priority, ready (-want +got):\n%s", diff)
	}
}

func TestLater(t *testing.T) {
	cases := map[string]struct {
		fill func(q *fairqueue.Queue[string])
		want []string // ready at once, after one second, and after two
	}{
		"keys wait for their time": {
			func(q *fairqueue.Queue[string]) {
				q.AddAfter("b", 2*time.Second)
				q.AddAfter("a", time.Second)
				q.Add("x")
			},
			[]string{"x", "a", "b"},
		},
		"the sooner time counts": {
			func(q *fairqueue.Queue[string]) {
				q.AddAfter("a", 2*time.Second)
				q.AddAfter("a", time.Second)
				q.AddAfter("a", time.Minute)
			},
			[]string{"", "a", ""},
		},
		"now is sooner than later, in any order": {
			func(q *fairqueue.Queue[string]) {
				q.AddAfter("a", time.Second)
				q.Add("a")
				q.Add("b")
				q.AddAfter("b", time.Second)
			},
			[]string{"a b", "", ""},
		},
		"failures wait longer each time, until forgotten": {
			func(q *fairqueue.Queue[string]) {
				q.AddRateLimited("a")
				q.AddRateLimited("b")
				q.AddRateLimited("b") // the earlier time counts
				q.Forget("b")
			},
			[]string{"", "a b", ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, clock := queue()
			tc.fill(q)
			got := []string{drain(q)}
			for i := range 2 {
				clock.Step(time.Second)
				await(t, q, len(strings.Fields(tc.want[i+1])))
				got = append(got, drain(q))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ready (-want +got):\n%s", diff)
			}
		})
	}
}

// timers is a clock whose timers fire when the test makes them.
type timers struct {
	*clocktesting.FakeClock
	mu   sync.Mutex
	made []*timer
}

type timer struct {
	clock.Timer
	fire func()
	live atomic.Bool
}

func (t *timer) Stop() bool { return t.live.Swap(false) }

func (c *timers) AfterFunc(_ time.Duration, f func()) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := &timer{}
	made.fire = func() { made.Stop(); f() }
	made.live.Store(true)
	c.made = append(c.made, made)
	return made
}

// count returns how many timers were made, and how many are still to fire.
func (c *timers) count() (made, live int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.made {
		if t.live.Load() {
			live++
		}
	}
	return len(c.made), live
}

// TestThereIsOneTimer checks that a timer that fires while its key is added in
// another way leaves no second timer behind.
func TestThereIsOneTimer(t *testing.T) {
	c := &timers{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	q := fairqueue.WithClock(workqueue.DefaultTypedControllerRateLimiter[string](), c)
	q.AddAfter("a", time.Second)
	q.AddAfter("b", time.Minute)
	c.Step(time.Second)
	q.Add("a") // the timer for it has fired, and waits for the lock
	c.made[0].fire()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		made, _ := c.count()
		return made == 3, nil
	})
	if _, live := c.count(); err != nil || live != 1 {
		t.Errorf("%d timers are set for one key, %v", live, err)
	}
}

// await waits until n keys are ready, as timers fire in other goroutines.
func await(t *testing.T, q *fairqueue.Queue[string], n int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(_ context.Context) (bool, error) {
		return q.Len() >= n, nil
	})
	if err != nil {
		t.Fatalf("%d keys are ready, want %d", q.Len(), n)
	}
}

// TestAgeing checks that a key with n older ones is handed out within 4(n+1)
// handouts.
func TestAgeing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		q, _ := queue()
		older := random.IntN(40)
		for i := range older {
			add(q, random.IntN(5), fmt.Sprint("older", i))
		}
		add(q, -100, "low")
		handouts, fresh := 0, 0
		for {
			for range random.IntN(4) { // others are added all the time, and have a higher priority
				add(q, 1+random.IntN(1000), fmt.Sprint("fresh", fresh))
				fresh++
			}
			key, _ := q.Get()
			q.Done(key)
			if handouts++; key == "low" {
				break
			}
		}
		if limit := 4 * (older + 1); handouts > limit {
			t.Fatalf("round %d: served as number %d with %d before it, want at most %d", round, handouts, older, limit)
		}
	}
}

func TestShutDown(t *testing.T) {
	cases := map[string]func(*fairqueue.Queue[string]){
		"at once":  (*fairqueue.Queue[string]).ShutDown,
		"draining": (*fairqueue.Queue[string]).ShutDownWithDrain,
	}
	for name, shutDown := range cases {
		t.Run(name, func(t *testing.T) {
			q, _ := queue()
			q.Add("a")
			q.Add("b")
			q.AddAfter("c", time.Second)
			key, _ := q.Get()
			done := make(chan struct{})
			go func() { shutDown(q); close(done) }()
			if name == "draining" {
				err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return q.ShuttingDown(), nil })
				if err != nil {
					t.Fatal(err)
				}
				select {
				case <-done:
					t.Error("it did not wait for the key that a worker has")
				default:
				}
			}
			q.Done(key)
			<-done
			q.Add("d")
			_, shutdown := q.Get()
			if diff := cmp.Diff([]any{true, 0}, []any{shutdown, q.Len()}); diff != "" {
				t.Errorf("shut down, ready (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyWorkers checks that all keys that are added while workers run are
// handed out, and none to two workers at a time.
func TestManyWorkers(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Microsecond, time.Millisecond)
	q := fairqueue.New("", limiter).(*fairqueue.Queue[int])
	const keys = 50
	var (
		mu     sync.Mutex
		with   = map[int]int{}
		served = map[int]int{}
		shared int
	)
	var workers, adders sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				key, _, shutdown := q.GetWithPriority()
				if shutdown {
					return
				}
				mu.Lock()
				if with[key]++; with[key] > 1 {
					shared++
				}
				served[key]++
				mu.Unlock()
				mu.Lock()
				with[key]--
				mu.Unlock()
				q.Done(key)
			}
		})
	}
	for a := range 4 {
		adders.Go(func() {
			random := rand.New(rand.NewPCG(uint64(a), 0))
			for range 2000 {
				priority := random.IntN(3)
				o := priorityqueue.AddOpts{Priority: &priority, RateLimited: random.IntN(2) == 0, After: time.Duration(random.IntN(1000))}
				q.AddWithOpts(o, random.IntN(keys))
			}
		})
	}
	adders.Wait()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return len(served) == keys && q.Len() == 0, nil
	})
	q.ShutDownWithDrain()
	workers.Wait()
	if err != nil || shared > 0 {
		t.Errorf("%d of %d keys were served, %d times with two workers at once", len(served), keys, shared)
	}
}
