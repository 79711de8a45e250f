package repository

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// counts are the metrics of the loop.
type counts struct {
	fetch      *stagemetrics.Stage
	reconciles stagemetrics.Reconciles
}

func newCounts(registry prometheus.Registerer, c clock.PassiveClock) counts {
	return counts{
		fetch: stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
			Name: "flotilla_fetch_duration_seconds", Help: "How long it takes to ask a repository for its commit and to store it if it is new, by result",
		}, prometheus.CounterOpts{
			Name: "flotilla_fetch_total", Help: "Looks at repositories, by result and reason: NewArtifact, UpToDate, or the reason of the condition that tells of the fault",
		}),
		reconciles: stagemetrics.NewReconciles(registry, sourcev1.GitRepositoryKind),
	}
}

// outcome returns the metric's reason for a reconcile without an error.
func (s *state) outcome() string {
	if s.artifact != nil {
		return reasonNewArtifact
	}
	return "UpToDate"
}
