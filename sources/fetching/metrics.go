package fetching

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// Counts are the metrics of a loop.
type Counts struct {
	Fetch      *stagemetrics.Stage
	Reconciles stagemetrics.Reconciles
}

// NewCounts returns the metrics of the loop for a kind; fetches of all kinds count as one stage.
func NewCounts(registry prometheus.Registerer, c clock.PassiveClock, kind string) Counts {
	return Counts{
		Fetch: stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
			Name: "flotilla_fetch_duration_seconds", Help: "How long it takes to ask a repository for its commit and to store it if it is new, by result",
		}, prometheus.CounterOpts{
			Name: "flotilla_fetch_total", Help: "Looks at repositories, by result and reason: NewArtifact, UpToDate, or the reason of the condition that tells of the fault",
		}),
		Reconciles: stagemetrics.NewReconciles(registry, kind),
	}
}
