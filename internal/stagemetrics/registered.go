package stagemetrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Registered returns c, or the same that was registered before. Nil registers nothing.
func Registered[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	if registry == nil {
		return c
	}
	var taken prometheus.AlreadyRegisteredError
	if errors.As(registry.Register(c), &taken) {
		if known, ok := taken.ExistingCollector.(C); ok {
			return known
		}
	}
	return c
}

// Replace registers c, which asks somebody whenever it is read, in the place of one that
// asks who has ended. Nil registers nothing.
func Replace(registry prometheus.Registerer, c prometheus.Collector) {
	if registry == nil {
		return
	}
	registry.Unregister(c)
	_ = registry.Register(c) // which fails where the name means something else: a test of docs/metrics.md shows it
}

// lengths returns bounds from one millisecond to about a minute, each four times the one
// before: a stage is a request, or a transfer.
func lengths() []float64 { return prometheus.ExponentialBuckets(0.001, 4, 9) }
