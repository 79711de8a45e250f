package tally

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reconciles counts how long the loop of one of Flux's kinds looks at an object, under the
// name that Flux's dashboards read. Flux tells by object; this tells by kind.
type Reconciles struct{ seconds prometheus.Observer }

// NewReconciles returns what counts for a kind. Its zero value counts nothing.
func NewReconciles(registry prometheus.Registerer, kind string) Reconciles {
	seconds := Registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "gotk_reconcile_duration_seconds",
		Help:    "The duration in seconds of a GitOps Toolkit resource reconciliation.",
		Buckets: Lengths(),
	}, []string{"kind"}))
	return Reconciles{seconds.WithLabelValues(kind)}
}

// Took counts one look.
func (r Reconciles) Took(d time.Duration) {
	if r.seconds != nil {
		r.seconds.Observe(d.Seconds())
	}
}
