package eventwriter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// newOutcomes counts Events by what became of them.
func newOutcomes(registry prometheus.Registerer) *prometheus.CounterVec {
	return stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_events_total", Help: "Events that were to be written, by what became of them: written, folded into a later one, dropped for lack of room, or failed",
	}, []string{"outcome"}))
}
