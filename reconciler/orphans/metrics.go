package orphans

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// newFound reports all that are found. What loops found that have ended is found anew.
func newFound(registry prometheus.Registerer) *prometheus.GaugeVec {
	found := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "flotilla_orphans", Help: "Objects in a member that were applied from here and that no Work names, by cluster",
	}, []string{"cluster"})
	stagemetrics.Replace(registry, found)
	return found
}
