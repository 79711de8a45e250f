package template

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

// counts are the metrics of Karmada's detector.
type counts struct {
	clock       clock.PassiveClock
	match       prometheus.Histogram
	apply       *prometheus.HistogramVec
	attempts    *prometheus.CounterVec
	preemptions *prometheus.CounterVec
}

func newCounts(registry prometheus.Registerer, c clock.PassiveClock) counts {
	buckets, labels := prometheus.ExponentialBuckets(0.001, 2, 12), []string{"result"}
	return counts{
		clock: c,
		match: stagemetrics.Registered(registry, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "resource_match_policy_duration_seconds", Help: "Duration in seconds to find a matched propagation policy for the resource template.",
			Buckets: buckets,
		})),
		apply: stagemetrics.Registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "resource_apply_policy_duration_seconds", Help: "Duration in seconds to apply a propagation policy for the resource template. By the result, 'error' means a resource template failed to apply the policy. Otherwise 'success'.",
			Buckets: buckets,
		}, labels)),
		attempts: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_apply_attempts_total", Help: "Number of attempts to be applied for a propagation policy. By the result, 'error' means a resource template failed to apply the policy. Otherwise 'success'.",
		}, labels)),
		preemptions: stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "policy_preemption_total", Help: "Number of preemption for the resource template. By the result, 'error' means the resource template failed to be preempted by other propagation policies. Otherwise 'success'.",
		}, labels)),
	}
}

// matched measures how long a phase takes that finds a template's policy.
func (c counts) matched(phase loop.Phase[state]) loop.Phase[state] {
	return func(ctx context.Context, s *state) (loop.Next, error) {
		began := c.clock.Now()
		next, err := phase(ctx, s)
		c.match.Observe(c.clock.Since(began).Seconds())
		return next, err
	}
}

// applied counts how policies are applied to templates by these phases. A delayed write is
// counted once it is made.
func (c counts) applied(phases ...loop.Phase[state]) loop.Phase[state] {
	return func(ctx context.Context, s *state) (loop.Next, error) {
		began := c.clock.Now()
		next, err := loop.Run(ctx, s, phases...)
		if s.policy == nil || s.delayed || s.awaits || ctx.Err() != nil {
			return next, err
		}
		result := stagemetrics.Success
		if err != nil {
			result = stagemetrics.Failure
		}
		c.apply.WithLabelValues(result).Observe(c.clock.Since(began).Seconds())
		c.attempts.WithLabelValues(result).Inc()
		if s.from != nil && (s.claimed || err != nil) {
			c.preemptions.WithLabelValues(result).Inc()
		}
		return next, err
	}
}
