package proxy

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// metrics count the requests to clusters.
type metrics struct {
	answers *prometheus.CounterVec // by cluster and code
}

// newMetrics registers the metrics, or returns those that the registry has already.
func newMetrics(registry prometheus.Registerer) metrics {
	return metrics{answers: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_proxy_answers_total",
		Help: "Answers of clusters to requests that came through the control plane, by cluster and code; code 0 is for none.",
	}, []string{"cluster", "code"}))}
}

// answered counts an answer by its code.
func (m metrics) answered(cluster string, code int) {
	m.answers.WithLabelValues(cluster, strconv.Itoa(code)).Inc()
}

// gone deletes the series of a cluster.
func (m metrics) gone(cluster string) {
	m.answers.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
}
