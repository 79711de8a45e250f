package drift

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Counter counts drifts by cluster, kind and what was done. Use NewCounter.
type Counter struct{ drifts *prometheus.CounterVec }

// NewCounter returns the count of drifts of all loops of this process.
func NewCounter() *Counter {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_drift_total",
		Help: "Changes of others in members to what was applied there, by what was done about them: reverted or reported",
	}, []string{"cluster", "kind", "action"})
	var taken prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(counter); errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(*prometheus.CounterVec); ok {
			return &Counter{existing}
		}
	}
	return &Counter{counter}
}

func (c *Counter) inc(cluster, kind, action string) {
	c.drifts.WithLabelValues(cluster, kind, action).Inc()
}

// Forget drops the counts of a cluster that is gone.
func (c *Counter) Forget(cluster string) {
	c.drifts.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}
