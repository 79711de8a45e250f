package decider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestDecisionsAreCounted: as Karmada counts them, and by reason; what nobody decided is not.
func TestDecisionsAreCounted(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	c := newCounts(registry, func() map[string]int { return map[string]int{"Unschedulable": 2} })
	decided := func(reason, why string) placement.Decision {
		return placement.Decision{Record: placement.Record{Reason: reason}, Why: why}
	}
	c.decided(time.Second, decided("Success", placement.DuePlacementChanged), true, nil)
	c.decided(time.Second, decided("Success", placement.DueAlways), false, nil) // the same as before
	c.decided(time.Second, decided("Success", placement.DueReplicasChanged), true, nil)
	c.decided(time.Second, decided("NoClusterFit", placement.DueFailed), false, nil)
	c.decided(time.Second, placement.Decision{}, false, errors.New("boom"))
	c.decided(time.Second, placement.Decision{}, false, nil)
	c.decided(time.Second, placement.Decision{}, false, context.Canceled)
	const want = `
# HELP flotilla_place_total Decisions where a binding runs, by result and the reason of the condition Scheduled
# TYPE flotilla_place_total counter
flotilla_place_total{reason="Error",result="error"} 1
flotilla_place_total{reason="NoClusterFit",result="error"} 1
flotilla_place_total{reason="Success",result="success"} 3
# HELP flotilla_unschedulable_bindings Bindings that could not be placed and wait for what may change that, by reason
# TYPE flotilla_unschedulable_bindings gauge
flotilla_unschedulable_bindings{reason="Unschedulable"} 2
# HELP karmada_scheduler_schedule_attempts_total Number of attempts to schedule resourceBinding
# TYPE karmada_scheduler_schedule_attempts_total counter
karmada_scheduler_schedule_attempts_total{result="error",schedule_type="ReconcileSchedule"} 2
karmada_scheduler_schedule_attempts_total{result="scheduled",schedule_type="ReconcileSchedule"} 2
karmada_scheduler_schedule_attempts_total{result="scheduled",schedule_type="ScaleSchedule"} 1
`
	names := []string{"flotilla_place_total", "flotilla_unschedulable_bindings", "karmada_scheduler_schedule_attempts_total"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}
