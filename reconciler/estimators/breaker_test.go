package estimators

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBreaker tells a story of questions at seconds, and which of them were let through.
func TestBreaker(t *testing.T) {
	type step struct {
		at   float64
		came outcome
	}
	for name, tc := range map[string]struct {
		steps []step
		want  []bool
	}{
		"who answers is always asked":                     {[]step{{0, answered}, {0, answered}, {0, answered}, {0, answered}}, []bool{true, true, true, true}},
		"a silence now and then is suffered":              {[]step{{0, silent}, {0, silent}, {0, answered}, {0, silent}, {0, silent}, {0, answered}}, []bool{true, true, true, true, true, true}},
		"three in a row cost a second":                    {[]step{{0, silent}, {0, silent}, {0, silent}, {0.9, answered}, {1, answered}, {1, answered}}, []bool{true, true, true, false, true, true}},
		"who is silent again rests for longer":            {[]step{{0, silent}, {0, silent}, {0, silent}, {1, silent}, {2.9, silent}, {3, answered}, {3, answered}}, []bool{true, true, true, true, false, true, true}},
		"a question that was given up says nothing":       {[]step{{0, silent}, {0, silent}, {0, unknown}, {0, silent}, {0, answered}}, []bool{true, true, true, true, false}},
		"who answered begins anew with the shortest rest": {[]step{{0, silent}, {0, silent}, {0, silent}, {1, silent}, {3, answered}, {3, silent}, {3, silent}, {3, silent}, {3.9, silent}, {4, answered}}, []bool{true, true, true, true, true, true, true, true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var b breaker
			var got []bool
			for _, s := range tc.steps {
				now := time.Unix(1000, 0).Add(time.Duration(s.at * float64(time.Second)))
				let := b.enter(now)
				got = append(got, let)
				if let {
					b.leave(now, s.came)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("let through (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneTries: after a rest, one question is asked before all others.
func TestOneTries(t *testing.T) {
	var b breaker
	now := time.Unix(1000, 0)
	for range failureThreshold {
		b.enter(now)
		b.leave(now, silent)
	}
	now = now.Add(shortestRest)
	if got := []bool{b.enter(now), b.enter(now)}; !got[0] || got[1] {
		t.Errorf("let through: %v, want the first", got)
	}
	for range 20 { // rests do not grow for ever
		b.leave(now, silent)
		now = now.Add(longestRest)
		if !b.enter(now) {
			t.Fatalf("it rests for longer than %s", longestRest)
		}
	}
}
