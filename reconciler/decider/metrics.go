package decider

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// The labels by which Karmada's scheduler counts decisions and their results.
const (
	reconcileSchedule = "ReconcileSchedule"
	scaleSchedule     = "ScaleSchedule"
	scheduled         = "scheduled"
)

// counts are what is counted of decisions.
type counts struct {
	attempts *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	outcomes *prometheus.CounterVec
}

func newCounts(registry prometheus.Registerer, unschedulable func() map[string]int) counts {
	stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{
		Name: "flotilla_unschedulable_bindings", Help: "Bindings that could not be placed and wait for what may change that, by reason",
	}, "reason", unschedulable))
	karmadas := []string{"result", "schedule_type"}
	return counts{
		attempts: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karmada_scheduler_schedule_attempts_total", Help: "Number of attempts to schedule resourceBinding",
		}, karmadas)),
		seconds: stagemetrics.Registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "karmada_scheduler_e2e_scheduling_duration_seconds", Help: "E2e scheduling latency in seconds",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, karmadas)),
		outcomes: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flotilla_place_total", Help: "Decisions where a binding runs, by result and the reason of the condition Scheduled",
		}, []string{"result", "reason"})),
	}
}

// decided counts a decision, and nothing where none was due.
func (c counts) decided(took time.Duration, decision placement.Decision, changed bool, err error) {
	reason := decision.Record.Reason
	if err == nil && !changed && reason == "" || errors.Is(err, context.Canceled) {
		return
	}
	kind, result, ours := reconcileSchedule, scheduled, stagemetrics.Success
	if decision.Why == placement.DueReplicasChanged {
		kind = scaleSchedule
	}
	if err != nil {
		reason = "Error"
	}
	if err != nil || !decision.Record.Succeeded() {
		result, ours = stagemetrics.Failure, stagemetrics.Failure
	}
	c.attempts.WithLabelValues(result, kind).Inc()
	c.seconds.WithLabelValues(result, kind).Observe(took.Seconds())
	c.outcomes.WithLabelValues(ours, reason).Inc()
}

// depth counts the bindings in the queue by reason.
func (u *Unschedulable) depth() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[string]int{}
	for _, e := range u.entries {
		out[e.reason]++
	}
	return out
}
