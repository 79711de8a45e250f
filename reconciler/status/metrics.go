package status

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

func newCounts(registry prometheus.Registerer, c clock.PassiveClock) *stagemetrics.Stage {
	return stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
		Name: "flotilla_rollup_duration_seconds", Help: "How long it takes to sum up what clusters say of a binding and to write what is news, by result",
	}, prometheus.CounterOpts{
		Name: "flotilla_rollup_total", Help: "Looks at what clusters say of a binding, by result and reason: Written, Held back for more, Unchanged, or Error",
	})
}

// outcomeOf is the outcome of a pass without an error.
func outcomeOf(next loop.Next) string {
	switch {
	case next.Done && next.After > 0:
		return "Held"
	case next.Done:
		return "Unchanged"
	default:
		return "Written"
	}
}
