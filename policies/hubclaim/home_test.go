package hubclaim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEnter(t *testing.T) {
	still := func(d time.Duration) Observation { return Observation{Still: d, Asked: true} }
	cases := map[string]struct {
		home  *Home
		place string
		seen  Observation
		next  *Home
		turn  Turn
	}{
		"a place that is not known":                   {home: &Home{At: "a", Asks: "c"}, next: &Home{At: "a", Asks: "c"}},
		"a place that is not known, in a new member":  {},
		"the first who acts":                          {place: "a", next: &Home{At: "a"}},
		"who acts already":                            {home: &Home{At: "a"}, place: "a", next: &Home{At: "a"}},
		"who acts, and has refused somebody":          {home: &Home{At: "a", Refused: []string{"b"}}, place: "a", next: &Home{At: "a", Refused: []string{"b"}}},
		"who acts is asked":                           {home: &Home{At: "a", Asks: "b"}, place: "a", next: &Home{At: "a", Refused: []string{"b"}}},
		"who acts is asked again":                     {home: &Home{At: "a", Asks: "b", Refused: []string{"b"}}, place: "a", next: &Home{At: "a", Refused: []string{"b"}}},
		"from elsewhere":                              {home: &Home{At: "a"}, place: "b", next: &Home{At: "a", Asks: "b"}, turn: Asks},
		"from elsewhere, for long":                    {home: &Home{At: "a"}, place: "b", seen: still(time.Hour), next: &Home{At: "a", Asks: "b"}, turn: Asks},
		"has asked, nobody had the time to answer":    {home: &Home{At: "a", Asks: "b"}, place: "b", seen: still(UntilMoved - 1), next: &Home{At: "a", Asks: "b"}, turn: Asks},
		"has asked before this start":                 {home: &Home{At: "a", Asks: "b"}, place: "b", next: &Home{At: "a", Asks: "b"}, turn: Asks},
		"has asked, nobody answers":                   {home: &Home{At: "a", Asks: "b"}, place: "b", seen: still(UntilMoved), next: &Home{At: "b"}},
		"was refused":                                 {home: &Home{At: "a", Refused: []string{"b"}}, place: "b", seen: still(time.Minute), next: &Home{At: "a", Refused: []string{"b"}}, turn: Refused},
		"was refused long ago":                        {home: &Home{At: "a", Refused: []string{"b"}}, place: "b", seen: still(untilAgain), next: &Home{At: "a", Asks: "b", Refused: []string{"b"}}, turn: Asks},
		"was refused before this start":               {home: &Home{At: "a", Refused: []string{"b"}}, place: "b", next: &Home{At: "a", Asks: "b", Refused: []string{"b"}}, turn: Asks},
		"a third was refused":                         {home: &Home{At: "a", Refused: []string{"c"}}, place: "b", next: &Home{At: "a", Asks: "b", Refused: []string{"c"}}, turn: Asks},
		"a third asks":                                {home: &Home{At: "a", Asks: "c"}, place: "b", seen: still(UntilMoved), next: &Home{At: "a", Asks: "c"}, turn: Asks},
		"a third has asked, and does not come for it": {home: &Home{At: "a", Asks: "c"}, place: "b", seen: still(untilOthers), next: &Home{At: "a", Asks: "b"}, turn: Asks},
		"was refused, and a third asks": {
			home: &Home{At: "a", Asks: "c", Refused: []string{"b"}}, place: "b", seen: still(0), next: &Home{At: "a", Asks: "c", Refused: []string{"b"}}, turn: Refused,
		},
		"a third is refused after one was": {
			home: &Home{At: "a", Asks: "c", Refused: []string{"b"}}, place: "a", next: &Home{At: "a", Refused: []string{"b", "c"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next, turn := tc.home.Enter(tc.place, tc.seen)
			if diff := cmp.Diff(tc.next, next); diff != "" || turn != tc.turn {
				t.Errorf("turn %v, want %v; home (-want +got):\n%s", turn, tc.turn, diff)
			}
		})
	}
}

// TestOneOfTwoHubsActs has two copies look in turns, from all that a member may say, and
// one of them not at all for a while.
func TestOneOfTwoHubsActs(t *testing.T) {
	const period = 10 * time.Second
	type looker struct {
		place string
		last  *Home
		since time.Duration
		asked bool
		acts  bool
	}
	for _, away := range []time.Duration{0, 20 * time.Second, 10 * time.Minute} {
		var home *Home
		two := []*looker{{place: "a"}, {place: "b"}}
		for now := time.Duration(0); now < time.Hour; now += period {
			for i, l := range two {
				if i == 0 && now > 10*time.Minute && now < 10*time.Minute+away {
					l.acts = false // it cannot reach the member
					continue
				}
				if !l.last.Same(home) {
					l.last, l.since = home, now
				}
				next, turn := home.Enter(l.place, Observation{Still: now - l.since, Asked: l.asked})
				l.asked = l.asked || turn == Asks
				l.acts, home = turn == Acts, next
			}
			if two[0].acts && two[1].acts {
				t.Fatalf("away for %s: both act at %s: %+v", away, now, *home)
			}
		}
		if b := two[1].acts; b != (away > time.Minute) || two[0].acts == b {
			t.Errorf("away for %s: at the end the first acts: %v, the second: %v", away, two[0].acts, b)
		}
	}
}
