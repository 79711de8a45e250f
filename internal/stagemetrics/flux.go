package stagemetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Reconciles counts how long the loop of one of Flux's kinds looks at an object, under the
// name that Flux's dashboards read. Flux reports by object; this reports by kind.
type Reconciles struct{ seconds prometheus.Observer }

// NewReconciles returns what counts for a kind.
func NewReconciles(registry prometheus.Registerer, kind string) Reconciles {
	seconds := Registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "gotk_reconcile_duration_seconds",
		Help:    "The duration in seconds of a GitOps Toolkit resource reconciliation.",
		Buckets: lengths(),
	}, []string{"kind"}))
	return Reconciles{seconds.WithLabelValues(kind)}
}

// Begin returns what is to be called at the end of a look.
func (r Reconciles) Begin(c clock.PassiveClock) func() {
	began := c.Now()
	return func() { r.seconds.Observe(c.Since(began).Seconds()) }
}
