package estimator

import (
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// counts are metrics with the names that Karmada's estimators use.
type counts struct {
	questions *prometheus.CounterVec
	took      *prometheus.HistogramVec
}

func newCounts(metrics prometheus.Registerer) counts {
	return counts{
		questions: stagemetrics.Registered(metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karmada_scheduler_estimator_estimating_request_total",
			Help: "Number of questions to this estimator, by what came of them and what they were about",
		}, []string{"result", "type"})),
		took: stagemetrics.Registered(metrics, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "karmada_scheduler_estimator_estimating_algorithm_duration_seconds",
			Help:    "Time from a question to its answer in seconds, waiting for a turn included",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15),
		}, []string{"result", "type"})),
	}
}

// answered counts one call of a method of the service.
func (c counts) answered(method string, took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	about := path.Base(method)
	c.questions.WithLabelValues(result, about).Inc()
	c.took.WithLabelValues(result, about).Observe(took.Seconds())
}
