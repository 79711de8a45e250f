package fairqueue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
)

// shared returns a queue in which the part of a key before the slash is its
// owner.
func shared(workers int) *fairqueue.Queue[string] {
	return fairqueue.Shared(workqueue.DefaultTypedControllerRateLimiter[string](), clocktesting.NewFakeClock(time.Unix(0, 0)), workers, func(key string) string {
		owner, _, _ := strings.Cut(key, "/")
		return owner
	})
}

// hand hands out n keys, and leaves all of them undone.
func hand(q *fairqueue.Queue[string], n int) string {
	var out []string
	for range n {
		key, _ := q.Get()
		out = append(out, key)
	}
	return strings.Join(out, " ")
}

func TestOneTenantNeverHasAllWorkers(t *testing.T) {
	q := shared(4)
	add(q, 7, "a/1", "a/2", "a/3", "a/4", "a/5")
	first := hand(q, 3)

	// The fourth worker waits, and gets the key of another tenant as soon as there
	// is one.
	fourth := make(chan string)
	go func() {
		key, _ := q.Get()
		fourth <- key
	}()
	add(q, -100, "b/1")
	if diff := cmp.Diff([]string{"a/1 a/2 a/3", "b/1"}, []string{first, <-fourth}); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}

	// A key that is done lets the next one of its tenant be handed out.
	q.Done("a/2")
	if diff := cmp.Diff("a/4", hand(q, 1)); diff != "" {
		t.Errorf("after one is done (-want +got):\n%s", diff)
	}
	if q.Len() != 1 {
		t.Errorf("%d keys wait, want the last of the tenant", q.Len())
	}
}

func TestAWorkerThatWaitsHearsOfRoom(t *testing.T) {
	q := shared(2)
	q.Add("a/1")
	q.Add("a/2")
	key, _ := q.Get()
	next := make(chan string)
	go func() {
		key, _ := q.Get()
		next <- key
	}()
	q.Done(key)
	if got := <-next; got != "a/2" {
		t.Errorf("handed out %s, want a/2", got)
	}
}

func TestWhoHasFewerWorkersGoesFirst(t *testing.T) {
	cases := map[string]struct {
		fill func(q *fairqueue.Queue[string])
		n    int
		want string
	}{
		"tenants alternate, however much one of them asks for": {
			func(q *fairqueue.Queue[string]) {
				add(q, 0, "a/1", "a/2", "a/3", "a/4", "a/5", "b/1", "b/2")
			}, 4, "a/1 b/1 a/2 a/3",
		},
		"what is urgent goes before that": {
			func(q *fairqueue.Queue[string]) {
				add(q, 0, "a/1", "a/2")
				add(q, -100, "b/1")
			}, 3, "a/1 a/2 b/1",
		},
		"one who is alone has all but one": {
			func(q *fairqueue.Queue[string]) { add(q, 0, "a/1", "a/2", "a/3", "a/4", "a/5", "a/6") }, 5, "a/1 a/2 a/3 a/4 a/5",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := shared(6)
			tc.fill(q)
			if diff := cmp.Diff(tc.want, hand(q, tc.n)); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedQueueEnds checks that tenants with nothing to do are dropped, and
// that the queue shuts down while keys wait for their tenant.
func TestSharedQueueEnds(t *testing.T) {
	q := shared(2)
	q.Add("a/1")
	q.Add("a/2")
	key, _ := q.Get()
	ended := make(chan bool)
	go func() {
		_, shutdown := q.Get()
		ended <- shutdown
	}()
	q.ShutDown()
	q.Done(key)
	if !<-ended || q.Len() != 0 {
		t.Errorf("the worker did not end, or %d keys are left", q.Len())
	}
}

func TestByNamespace(t *testing.T) {
	request := func(namespace, name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	q := fairqueue.ByNamespace(fairqueue.Workers(1))("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	for _, r := range []reconcile.Request{request("a", "1"), request("a", "2"), request("b", "1")} {
		q.Add(r)
	}
	first, _ := q.Get()
	second, _ := q.Get()
	if diff := cmp.Diff([]reconcile.Request{request("a", "1"), request("b", "1")}, []reconcile.Request{first, second}); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}
}
