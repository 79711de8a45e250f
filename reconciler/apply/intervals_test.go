package apply

import (
	"errors"
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

// TestWhatStallsIsCheckedForDriftNext: a run may take longer than was left until the check for drift. As a refused revision is not
// tried again by itself, nothing but that check would ever correct what drifts meanwhile.
func TestWhatStallsIsCheckedForDriftNext(t *testing.T) {
	stalled := loop.Stalled("PathNotFound", errors.New("no such folder"))
	cases := map[string]struct {
		took time.Duration
		due  time.Duration // after the start
		err  error
		want time.Duration
	}{
		"a check that is due later":                         {took: time.Second, due: 4 * time.Second, err: stalled, want: 3 * time.Second},
		"a check that became due during the run":            {took: 5 * time.Second, due: 4 * time.Second, err: stalled, want: minimumPause},
		"a check that was due before, and was not done":     {took: time.Second, due: 0, err: stalled},
		"a run that succeeded after a check was due":        {took: 5 * time.Second, due: 4 * time.Second, want: minimumPause},
		"a run that is tried again by itself: no check yet": {took: time.Second, due: 4 * time.Second, err: loop.Retry("BuildFailed", errors.New("disk full"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &lastApplied{schedule: schedule{due: noon.Add(tc.due)}}
			next, _ := m.nextCheck(loop.Next{}, tc.err, noon, noon.Add(tc.took))
			if next.After != tc.want {
				t.Errorf("the next run is after %s, want %s", next.After, tc.want)
			}
		})
	}
}
