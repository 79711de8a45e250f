package poster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

func newCounts(registry prometheus.Registerer, c clock.PassiveClock, breakers *breakers) *stagemetrics.Stage {
	stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{
		Name: "flotilla_commit_status_breakers", Help: "Ways of a namespace to a forge that let nothing through, by state: busy with a post, or open after a fault",
	}, "state", func() map[string]int { return breakers.depth(c.Now()) }))
	return stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
		Name: "flotilla_commit_status_post_duration_seconds", Help: "How long a forge takes to be told of a commit, by result",
	}, prometheus.CounterOpts{
		Name: "flotilla_commit_status_post_total", Help: "Posts of commit statuses to forges, by result and reason of the condition Synced",
	})
}

// depth counts the breakers that let nothing through now.
func (b *breakers) depth(now time.Time) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]int{"busy": 0, "open": 0}
	for _, own := range b.byRoute {
		switch {
		case now.Before(own.until):
			out["open"]++
		case own.busy:
			out["busy"]++
		}
	}
	return out
}
