package eventwriter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Options tune a writer. The zero value is the default.
type Options struct {
	// Component is the source that the Events name; empty means flotilla.
	Component string
	// Moment is how long an Event waits for a later one with the same reason on the same
	// object, which replaces it; zero means 500 ms. Warnings do not wait.
	Moment time.Duration
	// Most is how many Events may wait, and how many warnings besides; zero means 10,000.
	// Each queue takes as many again from tenants that use less than their share of Most,
	// so that a tenant that fills it keeps nobody else out.
	Most int
	// Tenant returns the tenant of an object; nil means that each namespace is one. Tenants
	// take turns; the Events of one tenant are written in order.
	Tenant func(obj runtime.Object) string
	// Lasting are the reasons of which each message is kept, as nothing else says later what it says:
	// none is replaced by a later one, or combined with others.
	Lasting []string
	// PerSecond and Burst limit how fast Events are written; zero means 25 and 100.
	// Warnings are exempt.
	PerSecond float32
	Burst     int
	// Metrics is where flotilla_events_total is registered; nil registers nothing.
	Metrics prometheus.Registerer
	// Clock is replaced in tests; nil means the real one.
	Clock clock.WithTickerAndDelayedExecution
}

// Writer writes Events. Use New.
type Writer struct {
	sink       record.EventSink
	scheme     *runtime.Scheme
	opts       Options
	correlator *record.EventCorrelator
	lasting    *record.EventCorrelator
	limiter    flowcontrol.RateLimiter
	outcomes   *prometheus.CounterVec
	queues     [2]*tenantQueue

	mu sync.Mutex
	// pending are the Events that wait, by key.
	pending map[key]*corev1.Event
	// named is the time that the last Event was named after.
	named time.Time
}

// key groups Events of which only the last is written: those of one reason on one object, and with one message where
// the reason is a lasting one.
type key struct{ tenant, apiVersion, kind, namespace, name, uid, eventType, reason, message string }

// The queues of a Writer.
const (
	warnings = iota
	others
)

// tries is how often an Event is sent while the hub does not answer.
const tries = 3

// New returns a writer to sink for objects of the kinds in scheme.
func New(sink record.EventSink, scheme *runtime.Scheme, opts Options) *Writer {
	opts = defaults(opts)
	return &Writer{
		sink:       sink,
		scheme:     scheme,
		opts:       opts,
		correlator: newCorrelator(opts.Clock),
		lasting:    newLasting(opts.Clock),
		limiter:    flowcontrol.NewTokenBucketRateLimiterWithClock(opts.PerSecond, opts.Burst, opts.Clock),
		queues:     [2]*tenantQueue{newTenantQueue(opts), newTenantQueue(opts)},
		pending:    map[key]*corev1.Event{},
		outcomes:   newOutcomes(opts.Metrics),
	}
}

func defaults(o Options) Options {
	if o.Component == "" {
		o.Component = "flotilla"
	}
	if o.Moment == 0 {
		o.Moment = 500 * time.Millisecond
	}
	if o.Most == 0 {
		o.Most = 10_000
	}
	if o.PerSecond == 0 {
		o.PerSecond = 25
	}
	if o.Burst == 0 {
		o.Burst = 100
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Event queues an Event and returns at once. Obj is an object, or a reference to one. Messages quote what tenants wrote: characters
// that a terminal would obey become their codes.
func (w *Writer) Event(obj runtime.Object, eventType, reason, message string) {
	ref, err := reference.GetReference(w.scheme, obj)
	if err != nil {
		w.count("failed")
		return
	}
	message = excerpt.Visible(message)
	tenant := ref.Namespace
	if w.opts.Tenant != nil {
		tenant = w.opts.Tenant(obj)
	}
	k := key{tenant, ref.APIVersion, ref.Kind, ref.Namespace, ref.Name, string(ref.UID), eventType, reason, ""}
	if slices.Contains(w.opts.Lasting, reason) {
		k.message = message
	}
	queue, wait := w.queues[others], w.opts.Moment
	if eventType == corev1.EventTypeWarning {
		queue, wait = w.queues[warnings], 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if waits := w.pending[k]; waits != nil {
		waits.Message = message
		w.count("folded")
		return
	}
	if !queue.admits(tenant) {
		w.count("dropped")
		return
	}
	w.pending[k] = w.event(ref, eventType, reason, message)
	queue.add(k, wait)
}

// event builds the Event. It is named after the time, as client-go does, and times are never used twice.
func (w *Writer) event(ref *corev1.ObjectReference, eventType, reason, message string) *corev1.Event {
	now := w.opts.Clock.Now()
	if !now.After(w.named) {
		now = w.named.Add(time.Nanosecond)
	}
	w.named = now
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", ref.Name, now.UnixNano())},
		InvolvedObject:      *ref,
		Type:                eventType,
		Reason:              reason,
		Message:             message,
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Count:               1,
		Source:              corev1.EventSource{Component: w.opts.Component},
		ReportingController: w.opts.Component,
	}
}

// Start implements manager.Runnable: it writes until ctx ends. Events that still wait then are lost.
func (w *Writer) Start(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { w.work(ctx, w.queues[warnings], func() {}) })
	group.Go(func() { w.work(ctx, w.queues[others], func() { w.yield(ctx) }) })
	<-ctx.Done()
	for _, q := range w.queues {
		q.queue.ShutDown()
	}
	group.Wait()
	return nil
}

// work writes the Events of a queue one after the other, each after a pause.
func (w *Writer) work(ctx context.Context, q *tenantQueue, pause func()) {
	for {
		k, ended := q.queue.Get()
		if ended {
			return
		}
		pause()
		if ctx.Err() == nil {
			w.write(ctx, w.take(q, k))
		}
		q.queue.Done(k)
	}
}

// take returns the Event whose turn it is. From here on a new Event with the same key is queued again
// and no longer replaces this one.
func (w *Writer) take(q *tenantQueue, k key) *corev1.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	event := w.pending[k]
	delete(w.pending, k)
	q.remove(k)
	return event
}

// yield waits until the rate limit allows one more write: Events must not slow down what the hub does for users.
func (w *Writer) yield(ctx context.Context) {
	for !w.limiter.TryAccept() {
		select {
		case <-w.opts.Clock.After(time.Duration(float64(time.Second) / float64(w.opts.PerSecond))):
		case <-ctx.Done():
			return
		}
	}
}

// write creates an Event, or raises the count of a similar one that exists.
func (w *Writer) write(ctx context.Context, event *corev1.Event) {
	correlator := w.correlator
	if slices.Contains(w.opts.Lasting, event.Reason) {
		correlator = w.lasting
	}
	result, err := correlator.EventCorrelate(event)
	if err != nil {
		w.count("failed")
		return
	}
	if result.Skip {
		w.count("folded")
		return
	}
	for range tries {
		stored, err := w.send(result)
		if err == nil {
			correlator.UpdateState(stored)
			w.count("written")
			return
		}
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && !apierrors.IsTooManyRequests(err) {
			log.FromContext(ctx).V(1).Info("an event was not taken", "reason", event.Reason, "of", event.InvolvedObject.Name, "err", err.Error())
			break // the server refused it: it would do so again
		}
		select {
		case <-w.opts.Clock.After(w.opts.Moment):
		case <-ctx.Done():
			return
		}
	}
	w.count("failed")
}

// send creates the Event, or patches the count of the one that exists.
func (w *Writer) send(result *record.EventCorrelateResult) (*corev1.Event, error) {
	if result.Event.Count > 1 {
		stored, err := w.sink.Patch(result.Event, result.Patch)
		if !apierrors.IsNotFound(err) {
			return stored, err
		}
		result.Event.ResourceVersion = "" // it has expired
	}
	stored, err := w.sink.Create(result.Event)
	if apierrors.IsAlreadyExists(err) {
		return result.Event, nil // the answer to an earlier try was lost
	}
	return stored, err
}

func (w *Writer) count(outcome string) { w.outcomes.WithLabelValues(outcome).Inc() }
