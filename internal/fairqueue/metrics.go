package fairqueue

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// watcher counts what happens in one queue, in the metrics of controllers'
// queues. The zero value counts nothing.
type watcher[T comparable] struct {
	depth         prometheus.Gauge
	adds, retries prometheus.Counter
	wait, work    prometheus.Observer
	added, taken  map[T]time.Time
}

// watch returns the watcher for the queue of that name. It counts nothing without
// a name, or where the metrics are not registered as expected.
func watch[T comparable](name string) watcher[T] {
	if name == "" {
		return watcher[T]{}
	}
	labels := []string{"name", "controller"}
	depth, depthKnown := existing(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Subsystem: metrics.WorkQueueSubsystem, Name: metrics.DepthKey, Help: "Current depth of workqueue by workqueue and priority",
	}, append(labels, "priority")))
	adds, addsKnown := existing(prometheus.NewCounterVec(prometheus.CounterOpts{
		Subsystem: metrics.WorkQueueSubsystem, Name: metrics.AddsKey, Help: "Total number of adds handled by workqueue",
	}, labels))
	retries, retriesKnown := existing(prometheus.NewCounterVec(prometheus.CounterOpts{
		Subsystem: metrics.WorkQueueSubsystem, Name: metrics.RetriesKey,
		Help: "Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit RequeueAfter or AddAfter calls)",
	}, labels))
	wait, waitKnown := existing(prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Subsystem: metrics.WorkQueueSubsystem, Name: metrics.QueueLatencyKey,
		Help: "How long in seconds an item stays in workqueue before being requested",
	}, labels))
	work, workKnown := existing(prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Subsystem: metrics.WorkQueueSubsystem, Name: metrics.WorkDurationKey,
		Help: "How long in seconds processing an item from workqueue takes.",
	}, labels))
	if !depthKnown || !addsKnown || !retriesKnown || !waitKnown || !workKnown {
		return watcher[T]{}
	}
	return watcher[T]{
		depth: depth.WithLabelValues(name, name, ""), adds: adds.WithLabelValues(name, name), retries: retries.WithLabelValues(name, name),
		wait: wait.WithLabelValues(name, name), work: work.WithLabelValues(name, name),
		added: map[T]time.Time{}, taken: map[T]time.Time{},
	}
}

// existing returns the collector in which controllers' queues are counted. The
// only way to get it is to register one of the same description, which fails with
// the existing one.
func existing[C prometheus.Collector](same C) (C, bool) {
	err := metrics.Registry.Register(same)
	var taken prometheus.AlreadyRegisteredError
	if !errors.As(err, &taken) {
		metrics.Registry.Unregister(same)
		return same, false
	}
	c, ok := taken.ExistingCollector.(C)
	return c, ok
}

// ready counts a key that can now be handed out.
func (w *watcher[T]) ready(key T, now time.Time) {
	if w.depth == nil {
		return
	}
	w.adds.Inc()
	w.depth.Inc()
	w.added[key] = now
}

// delayed counts a key that becomes ready later.
func (w *watcher[T]) delayed() {
	if w.retries != nil {
		w.retries.Inc()
	}
}

// handed counts a key that a worker has got.
func (w *watcher[T]) handed(key T, now time.Time) {
	if w.depth == nil {
		return
	}
	w.depth.Dec()
	w.wait.Observe(now.Sub(w.added[key]).Seconds())
	delete(w.added, key)
	w.taken[key] = now
}

// done counts a key that a worker is done with.
func (w *watcher[T]) done(key T, now time.Time) {
	if at, ok := w.taken[key]; ok {
		w.work.Observe(now.Sub(at).Seconds())
		delete(w.taken, key)
	}
}

// emptied records that no key is left to hand out.
func (w *watcher[T]) emptied() {
	if w.depth != nil {
		w.added = map[T]time.Time{}
	}
}

// dropped counts keys that will never be handed out.
func (w *watcher[T]) dropped(n int) {
	if w.depth != nil {
		w.depth.Sub(float64(n))
	}
}
