package apply

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
)

// TestIntervalsHaveAFloor: a Kustomization with an interval of almost zero does not
// run all the time, whether it succeeds or fails.
func TestIntervalsHaveAFloor(t *testing.T) {
	short := metav1.Duration{Duration: time.Millisecond}
	cases := map[string]func(*state){
		"an interval":                          func(s *state) { s.ks.Spec.Interval = short },
		"an interval of zero":                  func(s *state) { s.ks.Spec.Interval = metav1.Duration{} },
		"a retry interval":                     func(s *state) { s.ks.Spec.Interval.Duration, s.ks.Spec.RetryInterval = time.Second, &short },
		"both, and both are as they should be": func(s *state) { s.ks.Spec.Interval.Duration = time.Second },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s := run(change)
			s.last.record(s, nil, noon)
			if got, want := s.last.dueAfter(noon), intervals.Jittered(key, time.Second); got != want {
				t.Errorf("looks for drift after %s, want %s", got, want)
			}
			again := loop.As(unhealthyError(s, "health check failed", []health.Verdict{{ID: configID("a")}}), meta.HealthCheckFailedReason)
			if again.After != time.Second {
				t.Errorf("tries again after %s, want 1s", again.After)
			}
		})
	}
	after := run(func(s *state) { s.ks.Spec.Interval = short; s.source.revision = oldRevision })
	if !after.last.load(after) {
		t.Fatal("what stands was not recalled")
	}
	if got, want := after.last.dueAfter(noon), intervals.Within(key, time.Second); got != want {
		t.Errorf("after a restart: looks for drift after %s, want %s", got, want)
	}
}
