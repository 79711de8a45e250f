// Package metrics has the metrics of the loop that applies Kustomizations.
//
// In go a registry and a clock; out come what builds, applies and runs are counted by.
package metrics

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// Counts are what the loop counts. Use New.
type Counts struct {
	Build, Apply *stagemetrics.Stage
	Reconciles   stagemetrics.Reconciles
}

// New returns Counts of nothing; a registry of nil counts for nobody.
func New(registry prometheus.Registerer, c clock.PassiveClock) Counts {
	return Counts{
		Build: stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
			Name: "flotilla_build_duration_seconds", Help: "How long it takes to turn an artifact into objects, by result",
		}, prometheus.CounterOpts{
			Name: "flotilla_build_total", Help: "Builds of Kustomizations, by result and reason: Succeeded, or the reason of the condition that tells of the fault",
		}),
		Apply: stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
			Name: "flotilla_apply_duration_seconds", Help: "How long it takes to compare a revision with the control plane, to write what differs and to delete what has left it, by result",
		}, prometheus.CounterOpts{
			Name: "flotilla_apply_total", Help: "Revisions that were applied, by result and reason: Succeeded, or the reason of the condition that tells of the fault",
		}),
		Reconciles: stagemetrics.NewReconciles(registry, kustomizev1.KustomizationKind),
	}
}
