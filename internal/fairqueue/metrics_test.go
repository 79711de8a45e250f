package fairqueue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
)

// counted returns the metrics of the queue of that name: values of gauges and
// counters, and the number of observations of histograms.
func counted(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == name {
					out[family.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	before := counted(t, "counted") // by an earlier run of this test
	q := fairqueue.New("counted", workqueue.DefaultTypedControllerRateLimiter[string]())
	q.Add("a")
	q.Add("a")
	q.Add("b")
	q.Add("c")
	q.AddAfter("d", time.Hour)
	key, _ := q.Get()
	q.Done(key)
	_, _ = q.Get()
	want := map[string]float64{
		"workqueue_adds_total": 3, "workqueue_depth": 1, "workqueue_retries_total": 1,
		"workqueue_queue_duration_seconds": 2, "workqueue_work_duration_seconds": 1,
	}
	got := counted(t, "counted")
	for metric, n := range before {
		got[metric] -= n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	q.ShutDown()
	if got := counted(t, "counted")["workqueue_depth"]; got != 0 {
		t.Errorf("depth %v after the end, want 0", got)
	}
}
