package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// evictions is the value of the label that names the queue, in metrics that Karmada has by queue. There is only one.
const evictions = "scheduler"

// counts are the metrics of evictions.
type counts struct {
	seconds *prometheus.HistogramVec
	total   *prometheus.CounterVec
}

func newCounts(registry prometheus.Registerer) counts {
	return counts{
		seconds: stagemetrics.Registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "eviction_processing_latency_seconds", Help: "Seconds from the look that moves a template off clusters until that is written, by queue",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"name"})),
		total: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eviction_processing_total", Help: "Moves of templates off clusters that must be left, by queue and result",
		}, []string{"name", "result"})),
	}
}

// evicted counts an eviction that took so long, or failed. It does nothing on the zero value.
func (c counts) evicted(took time.Duration, err error) {
	if c.total == nil {
		return
	}
	result := stagemetrics.Success
	if err != nil {
		result = stagemetrics.Failure
	}
	c.seconds.WithLabelValues(evictions).Observe(took.Seconds())
	c.total.WithLabelValues(evictions, result).Inc()
}

// Count registers the metrics of evictions: their rate, how many wait, and how many of those that were moved are not
// healthy; nil registers none. It is called once, before the loop is registered.
func (r *Reconciler) Count(ctx context.Context, registry prometheus.Registerer) {
	stagemetrics.Replace(registry, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flotilla_moves_rate", Help: "How many templates are moved off failed or drained clusters in a second at most; 0 is as many as there are",
	}, func() float64 {
		rate, _ := r.rate.now(ctx)
		return rate
	}))
	stagemetrics.Replace(registry, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flotilla_moves_ill", Help: "How many of the last 60 templates that were moved off clusters lately are not healthy where they were moved to",
	}, func() float64 {
		_, seen := r.rate.now(ctx)
		return float64(seen.Ill)
	}))
	stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{
		Name: "eviction_queue_depth", Help: "How many templates wait for their turn to be moved off clusters, by queue",
	}, "name", func() map[string]int { return map[string]int{evictions: r.rate.depth()} }))
	stagemetrics.Replace(registry, &kinds{
		vec: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_kind_total", Help: "How many templates wait for their turn to be moved off a cluster, by cluster and kind",
		}, []string{"cluster_name", "resource_kind"}),
		ask: r.rate.kinds,
	})
	r.counts = newCounts(registry)
}

// clusterKind is a cluster, and a kind of templates that wait to leave it.
type clusterKind struct{ cluster, kind string }

// kinds is a collector of how many wait, by cluster and kind. It calls ask at each collection.
type kinds struct {
	mu  sync.Mutex
	vec *prometheus.GaugeVec
	ask func() map[clusterKind]int
}

// Describe implements prometheus.Collector.
func (k *kinds) Describe(to chan<- *prometheus.Desc) { k.vec.Describe(to) }

// Collect implements prometheus.Collector.
func (k *kinds) Collect(to chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.vec.Reset()
	for of, n := range k.ask() {
		k.vec.WithLabelValues(of.cluster, of.kind).Set(float64(n))
	}
	k.vec.Collect(to)
}
