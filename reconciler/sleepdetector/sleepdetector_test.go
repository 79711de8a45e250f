package sleepdetector

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestAProcessThatSleptIsNoticed, whoever looks first, and only where somebody looks at all.
func TestAProcessThatSleptIsNoticed(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		looked bool
		steps  []time.Duration
		want   time.Duration // after the start, when it last woke; zero: it did not sleep
	}{
		"it runs":                       {true, []time.Duration{5 * s, 5 * s, 15 * s}, 0},
		"it was stopped":                {true, []time.Duration{5 * s, 75 * s}, 80 * s},
		"it runs since":                 {true, []time.Duration{5 * s, 75 * s, 5 * s, 5 * s}, 80 * s},
		"it was stopped twice":          {true, []time.Duration{75 * s, 5 * s, 16 * s}, 96 * s},
		"nobody looks at a fake's time": {false, []time.Duration{75 * s}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakeClock(time.Unix(1000, 0))
			a := New(c, 15*s)
			if tc.looked {
				a.Begin()
			}
			var woke time.Time
			for _, step := range tc.steps {
				c.Step(step)
				woke, _ = a.Since()
			}
			var want time.Time
			if tc.want != 0 {
				want = time.Unix(1000, 0).Add(tc.want)
			}
			if !woke.Equal(want) {
				t.Errorf("woke at %s, want %s", woke, want)
			}
		})
	}
	now := time.Now()
	if got := jump(now, now.Round(0).Add(time.Minute)); got != time.Minute {
		t.Errorf("a machine that was stopped for a minute has slept for %s", got)
	}
}
