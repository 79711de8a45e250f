package stagemetrics

import "github.com/prometheus/client_golang/prometheus"

// Waits shows how much waits, by one label. It asks whenever it is read, so nothing is
// kept up to date for it. Use NewWaits.
type Waits struct {
	desc *prometheus.Desc
	ask  func() map[string]int
}

// NewWaits returns a gauge by the values of a label. What is asked answers at once, from
// any goroutine.
func NewWaits(o prometheus.GaugeOpts, label string, ask func() map[string]int) *Waits {
	return &Waits{desc: prometheus.NewDesc(o.Name, o.Help, []string{label}, nil), ask: ask}
}

// Describe implements prometheus.Collector.
func (w *Waits) Describe(to chan<- *prometheus.Desc) { to <- w.desc }

// Collect implements prometheus.Collector.
func (w *Waits) Collect(to chan<- prometheus.Metric) {
	for value, n := range w.ask() {
		to <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, float64(n), value)
	}
}
