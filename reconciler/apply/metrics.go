package apply

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// counts are the metrics of the loop.
type counts struct {
	build, apply *stagemetrics.Stage
	reconciles   stagemetrics.Reconciles
}

func newCounts(registry prometheus.Registerer, c clock.PassiveClock) counts {
	return counts{
		build: stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
			Name: "flotilla_build_duration_seconds", Help: "How long it takes to turn an artifact into objects, by result",
		}, prometheus.CounterOpts{
			Name: "flotilla_build_total", Help: "Builds of Kustomizations, by result and reason: Succeeded, or the reason of the condition that tells of the fault",
		}),
		apply: stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
			Name: "flotilla_apply_duration_seconds", Help: "How long it takes to compare a revision with the control plane, to write what differs and to delete what has left it, by result",
		}, prometheus.CounterOpts{
			Name: "flotilla_apply_total", Help: "Revisions that were applied, by result and reason: Succeeded, or the reason of the condition that tells of the fault",
		}),
		reconciles: stagemetrics.NewReconciles(registry, kustomizev1.KustomizationKind),
	}
}
