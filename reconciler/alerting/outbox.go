package alerting

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/alerting"
)

// Outcomes of messages.
const (
	sent    = "sent"
	failed  = "failed"
	dropped = "dropped"
)

const (
	// mostOfAlert is how many Events wait for one Alert: the oldest go.
	mostOfAlert = 50
	// mostWaiting is how many wait in all. As many again have room of tenants that use less than their share.
	mostWaiting = 2000
)

// outbox has the Events that Alerts are yet to send, in a queue for each Alert. A queue is there while something waits in it.
type outbox struct {
	outcomes *prometheus.CounterVec

	mu       sync.Mutex
	queues   map[client.ObjectKey]*queue
	waiting  int
	byTenant map[string]int
	idle     []client.ObjectKey // queues that nobody works on
	wake     chan struct{}
}

type queue struct{ events []alerting.Event }

func newOutbox(registry prometheus.Registerer) *outbox {
	return &outbox{
		queues: map[client.ObjectKey]*queue{}, byTenant: map[string]int{}, wake: make(chan struct{}, 1),
		outcomes: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flotilla_messages_total", Help: "Messages about Events that Alerts asked for, by what became of them: sent, failed, or dropped for lack of room",
		}, []string{"outcome"})),
	}
}

func (o *outbox) count(outcome string) { o.outcomes.WithLabelValues(outcome).Inc() }

// add adds an Event to the queue of an Alert.
func (o *outbox) add(key client.ObjectKey, e alerting.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.queues[key]
	switch {
	case l != nil && len(l.events) >= mostOfAlert:
		o.take(key, l)
		o.count(dropped)
	case !o.admits(key.Namespace):
		o.count(dropped)
		return
	}
	if l == nil {
		l = &queue{}
		o.queues[key] = l
		o.idle = append(o.idle, key)
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
	l.events = append(l.events, e)
	o.waiting++
	o.byTenant[key.Namespace]++
}

// admits reports whether there is room for one more Event of a tenant: who uses less than a share finds some where others have
// taken all.
func (o *outbox) admits(tenant string) bool {
	if o.waiting < mostWaiting {
		return true
	}
	tenants := len(o.byTenant)
	if o.byTenant[tenant] == 0 {
		tenants++
	}
	return o.waiting < 2*mostWaiting && o.byTenant[tenant] < mostWaiting/tenants
}

// take removes the first Event of a queue.
func (o *outbox) take(key client.ObjectKey, l *queue) alerting.Event {
	e := l.events[0]
	l.events = l.events[1:]
	o.waiting--
	if o.byTenant[key.Namespace]--; o.byTenant[key.Namespace] == 0 {
		delete(o.byTenant, key.Namespace)
	}
	return e
}

// begin returns the queues that nobody works on; the caller does from here on.
func (o *outbox) begin() []client.ObjectKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.idle
	o.idle = nil
	return out
}

// next returns the first Event of a queue; false ends the queue.
func (o *outbox) next(key client.ObjectKey) (alerting.Event, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.queues[key]
	if l == nil || len(l.events) == 0 {
		delete(o.queues, key)
		return alerting.Event{}, false
	}
	return o.take(key, l), true
}

// drop forgets what waits in a queue.
func (o *outbox) drop(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := o.queues[key]; l != nil && len(l.events) > 0; {
		o.take(key, l)
	}
}

// turns has each namespace send a few messages at the same time, and no more. The zero value is ready.
type turns struct {
	mu sync.Mutex
	by map[string]*turn
}

type turn struct {
	users int
	slots chan struct{}
}

// atOnce is how many messages of one namespace are on their way at the same time.
const atOnce = 8

// enter returns the slots of a namespace: whoever sends puts something in, and takes it out. It ends with leave.
func (t *turns) enter(namespace string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]*turn{}
	}
	if t.by[namespace] == nil {
		t.by[namespace] = &turn{slots: make(chan struct{}, atOnce)}
	}
	t.by[namespace].users++
	return t.by[namespace].slots
}

func (t *turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by[namespace].users--; t.by[namespace].users == 0 {
		delete(t.by, namespace)
	}
}
