package hubconn

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// Count registers the metric that shows whether the hub is there.
func (c *Connection) Count(registry prometheus.Registerer) {
	stagemetrics.Replace(registry, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flotilla_agent_hub_up", Help: "Whether the agent's hub is there: 1, or 0 while it goes on without",
	}, func() float64 {
		if c.Away() == nil {
			return 1
		}
		return 0
	}))
}
