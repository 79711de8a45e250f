package drift

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// Counter counts drifts by cluster, kind and what was done. Use NewCounter.
type Counter struct{ drifts *prometheus.CounterVec }

// NewCounter returns the counter in the registry, which all loops share; nil registers
// none.
func NewCounter(registry prometheus.Registerer) *Counter {
	return &Counter{stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_drift_total",
		Help: "Changes of others in members to what was applied there, by what was done about them: reverted or reported",
	}, []string{"cluster", "kind", "action"}))}
}

func (c *Counter) inc(cluster, kind, action string) {
	c.drifts.WithLabelValues(cluster, kind, action).Inc()
}

// Forget drops the counts of a cluster that is gone.
func (c *Counter) Forget(cluster string) {
	c.drifts.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}
