package scheduler

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestEvictionsAreCounted: what waits, by cluster and kind, and the outcomes, under the names that dashboards use.
func TestEvictionsAreCounted(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	r := &Reconciler{rate: newRateLimiter(1, clock)}
	registry := prometheus.NewRegistry()
	r.Count(t.Context(), registry)
	reqs := make([]reconcile.Request, 4)
	for i := range reqs {
		reqs[i] = reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}}
		kind, leaves := "Deployment", []string{"west"}
		if i == 3 {
			kind, leaves = "StatefulSet", []string{"east", "west"}
		}
		r.rate.wait(t.Context(), reqs[i], kind, placement.Decision{Evicts: leaves}) // the first one goes at once
	}
	r.counts.evicted(20*time.Millisecond, nil)
	r.counts.evicted(20*time.Millisecond, errors.New("refused"))
	want := map[string]float64{
		"eviction_queue_depth name=scheduler":                             3,
		"eviction_kind_total cluster_name=west resource_kind=Deployment":  2,
		"eviction_kind_total cluster_name=west resource_kind=StatefulSet": 1,
		"eviction_kind_total cluster_name=east resource_kind=StatefulSet": 1,
		"eviction_processing_total name=scheduler result=success":         1,
		"eviction_processing_total name=scheduler result=error":           1,
		"eviction_processing_latency_seconds name=scheduler":              2,
	}
	if diff := cmp.Diff(want, gathered(t, registry)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, req := range reqs {
		r.rate.forget(req)
	}
	got := gathered(t, registry)
	if _, still := got["eviction_kind_total cluster_name=west resource_kind=Deployment"]; still || got["eviction_queue_depth name=scheduler"] != 0 {
		t.Errorf("nobody waits: %v", got)
	}
}

// gathered returns the values of the eviction metrics, by name and labels; for a histogram its count.
func gathered(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "eviction_") {
			continue
		}
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}
