package setback

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Count registers the metric that shows whether something is held.
func Count(registry prometheus.Registerer, hold func() *hubclaim.Hold) {
	stagemetrics.Replace(registry, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flotilla_hub_held", Help: "Whether nothing is changed in clusters since the control plane was set back to an older backup: 1, or 0",
	}, func() float64 {
		if hold() != nil {
			return 1
		}
		return 0
	}))
}
