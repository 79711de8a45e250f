package silence_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/silence"
)

// TestRead follows one cluster through looks at it: what counts after each, and when to look again.
func TestRead(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	heard := -1
	type observation struct {
		at, since int // in seconds; since is when it fell silent, or heard
		silent    bool
		again     time.Duration
		reported  bool
	}
	cases := map[string]struct {
		after time.Duration
		looks []observation
	}{
		"one that is heard of":                      {time.Minute, []observation{{0, heard, false, 0, false}, {60, heard, false, 0, false}}},
		"a blink is none":                           {time.Minute, []observation{{30, 10, false, 40 * time.Second, false}, {50, heard, false, 0, false}, {80, 70, false, 50 * time.Second, false}}},
		"one that is lost, and comes back":          {time.Minute, []observation{{30, 0, false, 30 * time.Second, false}, {60, 0, true, 0, true}, {90, heard, false, 0, true}}},
		"one that was lost before the first look":   {time.Minute, []observation{{90, 0, true, 0, true}}},
		"what has a later date is the same silence": {time.Minute, []observation{{60, 0, true, 0, true}, {70, 65, true, 0, false}}},
		"a date of the future is taken for now":     {time.Minute, []observation{{0, 30, false, 90 * time.Second, false}, {90, 30, true, 0, true}}},
		"where a loss counts at once":               {0, []observation{{0, -30, true, 0, true}, {30, heard, false, 0, true}}},
		"one that comes and goes is heard of at once, and lost less and less often": {0, []observation{
			{0, 0, true, 0, true}, {10, heard, false, 0, true},
			{20, 20, false, 10 * time.Second, false}, {30, 20, true, 0, true},
			{50, heard, false, 0, true}, {70, 70, false, 20 * time.Second, false}, {90, 70, true, 0, true},
			{100, heard, false, 0, true}, {110, 110, false, 100 * time.Second, false}, {210, 110, true, 0, true},
			{230, heard, false, 0, true}, {240, 240, false, 210 * time.Second, false}, {450, 240, true, 0, true},
			{460, heard, false, 0, true}, {470, 470, false, 280 * time.Second, false}, {750, 470, true, 0, true}, {751, heard, false, 0, true},
		}},
		"what it missed in a pause is told after that": {0, []observation{
			{0, 0, true, 0, true}, {10, heard, false, 0, true},
			{20, 20, false, 10 * time.Second, false}, {25, heard, false, 5 * time.Second, false}, {30, heard, false, 0, true},
			{40, 40, false, 50 * time.Second, false}, {50, heard, false, 40 * time.Second, false},
			{80, 80, false, 10 * time.Second, false}, {90, 80, true, 0, true}, {95, heard, false, 0, true}, {230, heard, false, 0, false},
		}},
		"a blink in a pause is no miss": {time.Minute, []observation{
			{60, 0, true, 0, true}, {70, heard, false, 0, true}, {80, 80, false, time.Minute, false}, {90, heard, false, 0, false},
		}},
		"a silence that lasted, and ended before it was looked at": {time.Minute, []observation{
			{0, 0, false, time.Minute, false}, {61, heard, false, 0, true},
		}},
		"and again at once after it has been quiet": {0, []observation{
			{0, 0, true, 0, true}, {30, heard, false, 0, true}, {90, 90, true, 0, true}, {100, heard, false, 0, true}, {690, 690, true, 0, true},
			{700, heard, false, 0, true}, {710, 710, false, 10 * time.Second, false},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []observation
			var c silence.Cluster
			for _, l := range tc.looks {
				var since time.Time
				if l.since != heard {
					since = at(l.since)
				}
				var again time.Duration
				turns := c.Turns
				c, again = c.Observe(since, tc.after, at(l.at))
				got = append(got, observation{l.at, l.since, c.Silent, again, c.Turns != turns})
			}
			if diff := cmp.Diff(tc.looks, got, cmp.AllowUnexported(observation{})); diff != "" {
				t.Errorf("looks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatEndsInAPause: that a cluster is heard of again is known at once, also where it is told later, or never.
func TestWhatEndsInAPause(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	type observation struct {
		at     int
		silent bool
		ends   bool
	}
	for name, tc := range map[string]struct {
		after time.Duration
		looks []observation
	}{
		"what is told needs no other word":     {0, []observation{{0, true, false}, {10, false, false}, {20, false, false}}},
		"in a pause, each time":                {0, []observation{{0, true, false}, {10, false, false}, {12, true, false}, {14, false, true}, {16, true, false}, {18, false, true}, {30, false, false}}},
		"a silence that was too short":         {time.Minute, []observation{{0, true, false}, {10, false, true}, {20, false, false}}},
		"a silence that goes on after a pause": {0, []observation{{0, true, false}, {10, false, false}, {20, true, false}, {30, true, false}, {40, false, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []observation
			var c silence.Cluster
			for _, l := range tc.looks {
				var since time.Time
				if l.silent {
					since = at(l.at)
				}
				next, _ := c.Observe(since, tc.after, at(l.at))
				got = append(got, observation{l.at, l.silent, c.Ends(next)})
				c = next
			}
			if diff := cmp.Diff(tc.looks, got, cmp.AllowUnexported(observation{})); diff != "" {
				t.Errorf("looks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClusterThatFlaps comes and goes for an hour: in each pause it is told to be silent once at most, and that it is heard of again
// is told when it is.
func TestAClusterThatFlaps(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		after, period, down time.Duration
		falls, turns        int
	}{
		"each 90 s, where a loss counts at once":    {0, 90 * time.Second, 45 * time.Second, 12, 27},
		"each 90 s, where it counts after a minute": {time.Minute, 90 * time.Second, 75 * time.Second, 13, 26},
		"each second": {0, time.Second, 500 * time.Millisecond, 15, 30},
	} {
		t.Run(name, func(t *testing.T) {
			var c silence.Cluster
			var fell []time.Duration // when it was told to be silent, or to have been so in a pause
			next, falls := time.Duration(0), 0
			for at := time.Duration(0); at < time.Hour; at += 100 * time.Millisecond {
				var since time.Time
				down := at%tc.period < tc.down
				if down {
					since = start.Add(at - at%tc.period)
				}
				if changed := at%tc.period == 0 || at%tc.period == tc.down; !changed && (next == 0 || at < next) {
					continue
				}
				was := c
				var again time.Duration
				if c, again = c.Observe(since, tc.after, start.Add(at)); c.Silent && !down {
					t.Fatalf("at %s it is silent, and is heard of", at)
				}
				if next = 0; again > 0 {
					next = at + again
				}
				if c.Turns != was.Turns && !was.Silent {
					fell = append(fell, at)
				}
				if c.Silent && !was.Silent {
					falls++
				}
			}
			pause := 30 * time.Second
			for i := 1; i < len(fell); i++ {
				if got := fell[i] - fell[i-1]; got < pause {
					t.Errorf("at %s it is told again after %s, within the pause of %s", fell[i], got, pause)
				}
				pause = min(2*pause, 5*time.Minute)
			}
			if falls != tc.falls || c.Turns != tc.turns {
				t.Errorf("it is told to be silent %d times, want %d; in all there are %d turns, want %d", falls, tc.falls, c.Turns, tc.turns)
			}
		})
	}
}
