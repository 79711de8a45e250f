package silence_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/silence"
)

// TestLook follows one cluster through looks at it: what counts after each, and when to look again.
func TestLook(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	heard := -1
	type look struct {
		at, since int // in seconds; since is when it fell silent, or heard
		silent    bool
		again     time.Duration
		told      bool
	}
	cases := map[string]struct {
		after time.Duration
		looks []look
	}{
		"one that is heard of":                      {time.Minute, []look{{0, heard, false, 0, false}, {60, heard, false, 0, false}}},
		"a blink is none":                           {time.Minute, []look{{30, 10, false, 40 * time.Second, false}, {50, heard, false, 0, false}, {80, 70, false, 50 * time.Second, false}}},
		"one that is lost, and comes back":          {time.Minute, []look{{30, 0, false, 30 * time.Second, false}, {60, 0, true, 0, true}, {90, heard, false, 0, true}}},
		"one that was lost before the first look":   {time.Minute, []look{{90, 0, true, 0, true}}},
		"what has a later date is the same silence": {time.Minute, []look{{60, 0, true, 0, true}, {70, 65, true, 0, false}}},
		"a date of the future is taken for now":     {time.Minute, []look{{0, 30, false, 90 * time.Second, false}, {90, 30, true, 0, true}}},
		"where a loss counts at once":               {0, []look{{0, -30, true, 0, true}, {30, heard, false, 0, true}}},
		"one that comes and goes is believed less and less often": {0, []look{
			{0, 0, true, 0, true}, {10, heard, false, 0, true},
			{20, 20, false, 20 * time.Second, false}, {40, 20, true, 0, true},
			{50, heard, true, 50 * time.Second, false}, {70, 70, true, 30 * time.Second, false}, {100, heard, false, 0, true},
			{110, 110, false, 110 * time.Second, false}, {220, 110, true, 0, true},
			{230, heard, true, 230 * time.Second, false}, {460, heard, false, 0, true},
			{470, 470, false, 290 * time.Second, false}, {760, 470, true, 0, true},
		}},
		"what it missed in a pause is told after that": {0, []look{
			{0, 0, true, 0, true}, {10, heard, false, 0, true},
			{20, 20, false, 20 * time.Second, false}, {30, heard, false, 10 * time.Second, false}, {40, heard, false, 0, true},
			{50, 50, false, 50 * time.Second, false}, {100, 50, true, 0, true},
			{110, heard, true, 110 * time.Second, false}, {120, 120, true, 100 * time.Second, false}, {220, 120, true, 0, true}, {230, 120, true, 0, false},
		}},
		"a blink in a pause is no miss": {time.Minute, []look{
			{60, 0, true, 0, true}, {70, heard, false, 0, true}, {80, 80, false, time.Minute, false}, {90, heard, false, 0, false},
		}},
		"and again at once after it has been quiet": {0, []look{
			{0, 0, true, 0, true}, {30, heard, false, 0, true}, {90, 90, true, 0, true}, {690, heard, false, 0, true}, {700, 700, true, 0, true},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []look
			var c silence.Cluster
			for _, l := range tc.looks {
				var since time.Time
				if l.since != heard {
					since = at(l.since)
				}
				var again time.Duration
				turns := c.Turns
				c, again = c.Look(since, tc.after, at(l.at))
				got = append(got, look{l.at, l.since, c.Silent, again, c.Turns != turns})
			}
			if diff := cmp.Diff(tc.looks, got, cmp.AllowUnexported(look{})); diff != "" {
				t.Errorf("looks (-want +got):\n%s", diff)
			}
		})
	}
}
