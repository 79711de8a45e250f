package stagemetrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
)

var errBoom = errors.New("boom")

func newStage(registry prometheus.Registerer, c clock.PassiveClock) *stagemetrics.Stage {
	return stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{Name: "s", Help: "h"}, prometheus.CounterOpts{Name: "c", Help: "h"})
}

// gathered returns what a registry has as lines: the name, the labels and the value.
func gathered(t *testing.T, registry prometheus.Gatherer) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			out = append(out, fmt.Sprintf("%s %s %g", family.GetName(), strings.Join(labels, "/"), value))
		}
	}
	return out
}

func TestAStageIsCountedByHowItEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   []string // reason and result, as labels are in order
	}{
		"a success without a word":         {want: []string{"c Succeeded/success 1", "s success 2"}},
		"a success with a word":            {reason: "UpToDate", want: []string{"c UpToDate/success 1", "s success 2"}},
		"what waits for another":           {err: loop.Waiting("NotReady", time.Second, errBoom), want: []string{"c NotReady/waiting 1", "s waiting 2"}},
		"what needs a person":              {err: fmt.Errorf("read: %w", loop.Stalled("BadInput", errBoom)), want: []string{"c BadInput/error 1", "s error 2"}},
		"a fault without a reason":         {err: errBoom, want: []string{"c Error/error 1", "s error 2"}},
		"what nobody waits for any longer": {err: fmt.Errorf("ask: %w", context.Canceled)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			registry, c := prometheus.NewRegistry(), clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			end := newStage(registry, c).Begin()
			c.SetTime(time.Unix(2, 0))
			end(tc.reason, tc.err)
			if diff := cmp.Diff(tc.want, gathered(t, registry)); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhasesCountAsOneStage(t *testing.T) {
	registry := prometheus.NewRegistry()
	stage := newStage(registry, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	phase := func(next loop.Next, err error) loop.Phase[int] {
		return func(_ context.Context, ran *int) (loop.Next, error) { *ran++; return next, err }
	}
	ran := 0
	next, err := stagemetrics.Phases(stage, phase(loop.Next{After: time.Second}, nil), phase(loop.Next{Done: true}, nil), phase(loop.Next{}, errBoom))(t.Context(), &ran)
	if want := (loop.Next{Done: true, After: time.Second}); next != want || err != nil || ran != 2 {
		t.Errorf("next = %+v, error = %v after %d phases, want %+v after 2", next, err, ran, want)
	}
	if _, err := stagemetrics.Phases(stage, phase(loop.Next{}, errBoom))(t.Context(), &ran); !errors.Is(err, errBoom) {
		t.Errorf("error = %v, want %v", err, errBoom)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stagemetrics.Phases(stage, phase(loop.Next{}, errBoom))(over, &ran); !errors.Is(err, errBoom) {
		t.Errorf("error = %v, want %v", err, errBoom)
	}
	if diff := cmp.Diff([]string{"c Error/error 1", "c Succeeded/success 1", "s error 0", "s success 0"}, gathered(t, registry)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

// TestReasonsAreBounded: whatever reasons there are, a scrape stays small.
func TestReasonsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	stage := newStage(registry, clock.RealClock{})
	for i := range 1000 {
		stage.Ended(0, stagemetrics.Failure, fmt.Sprint("reason ", i))
	}
	if got := len(gathered(t, registry)); got > 70 {
		t.Errorf("%d series after a thousand reasons", got)
	}
}

// TestLoopsThatBeginAnewGoOnCounting: a process that loses its lease builds its loops once more.
func TestLoopsThatBeginAnewGoOnCounting(t *testing.T) {
	registry := prometheus.NewRegistry()
	for n := range 2 {
		newStage(registry, clock.RealClock{}).Ended(0, stagemetrics.Success, "")
		c := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		end := stagemetrics.NewReconciles(registry, "Kustomization").Begin(c)
		c.SetTime(time.Unix(1, 0))
		end()
		stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{Name: "w", Help: "h"}, "for", func() map[string]int { return map[string]int{"room": n} }))
	}
	want := []string{"c Succeeded/success 2", "gotk_reconcile_duration_seconds Kustomization 2", "s success 0", "w room 1"}
	if diff := cmp.Diff(want, gathered(t, registry)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

// TestWithoutARegistry: loops of tests and of commands count for nobody.
func TestWithoutARegistry(t *testing.T) {
	newStage(nil, clock.RealClock{}).Begin()("", nil)
	stagemetrics.NewReconciles(nil, "GitRepository").Begin(clock.RealClock{})()
	stagemetrics.Replace(nil, nil)
	var none *stagemetrics.Stage
	none.Begin()("", nil)
	none.Ended(0, stagemetrics.Success, "")
}

// BenchmarkStage is what counting adds to a stage.
func BenchmarkStage(b *testing.B) {
	stage := newStage(prometheus.NewRegistry(), clock.RealClock{})
	b.ReportAllocs()
	for b.Loop() {
		stage.Begin()("Written", nil)
	}
}
