package binding

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

func newCounts(registry prometheus.Registerer, c clock.PassiveClock) *stagemetrics.Stage {
	return stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
		Name: "binding_sync_work_duration_seconds", Help: "Duration in seconds to sync works for a binding object. By the result, 'error' means a binding failed to sync works. Otherwise 'success'.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	}, prometheus.CounterOpts{
		Name: "flotilla_binding_sync_total", Help: "Looks at bindings to write their Works, by result and reason: Succeeded, or the reason of the first fault",
	})
}

// failure returns the outcome of a pass: its error, or the first fault of a cluster. One that
// needs a person counts before one that waits.
func (s *state) failure(err error) error {
	for _, f := range s.failed {
		if err == nil || loop.As(err, "").Class == loop.ClassWaiting {
			err = f.err
		}
	}
	return err
}
