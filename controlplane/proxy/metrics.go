package proxy

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// metrics count what goes to clusters.
type metrics struct {
	answers *prometheus.CounterVec // by cluster and code
}

// newMetrics returns those of the registry; of one that has them already, these.
func newMetrics(registry prometheus.Registerer) metrics {
	return metrics{answers: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_proxy_answers_total",
		Help: "Answers of clusters to requests that came through the control plane, by cluster and code; code 0 is for none.",
	}, []string{"cluster", "code"}))}
}

// answered counts an answer.
func (m metrics) answered(cluster string, code int) {
	m.answers.WithLabelValues(cluster, strconv.Itoa(code)).Inc()
}

// gone forgets a cluster.
func (m metrics) gone(cluster string) {
	m.answers.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}
