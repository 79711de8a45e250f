package claims_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/claims"
)

func TestBehind(t *testing.T) {
	history := claims.History{Runs: []claims.Run{{Number: 3, ID: "c", Began: 300}, {Number: 4, ID: "d", Began: 400}}, Forgiven: []claims.Lost{{ID: "lost"}}}
	for name, tc := range map[string]struct {
		history claims.History
		mark    *claims.Mark
		began   int64
		want    bool
	}{
		"a member without a mark":                           {history, nil, 500, false},
		"a mark of the run before, within it":               {history, &claims.Mark{Run: 4, ID: "d", Revision: 450}, 500, false},
		"a mark beyond what the store has":                  {history, &claims.Mark{Run: 4, ID: "d", Revision: 501}, 500, true},
		"a mark of an earlier run, within it":               {history, &claims.Mark{Run: 3, ID: "c", Revision: 399}, 500, false},
		"a mark beyond its run, though the store has grown": {history, &claims.Mark{Run: 3, ID: "c", Revision: 450}, 500, true},
		"a mark of a run that the store does not know":      {history, &claims.Mark{Run: 5, ID: "e", Revision: 100}, 500, true},
		"a mark of a run whose number was given again":      {history, &claims.Mark{Run: 4, ID: "x", Revision: 100}, 500, true},
		"a mark of a run that is too long ago":              {history, &claims.Mark{Run: 2, ID: "b", Revision: 250}, 500, false},
		"a mark that the store has forgotten everything of": {claims.History{}, &claims.Mark{Run: 1, ID: "a", Revision: 2}, 500, true},
		"a mark of a lost run that was forgiven":            {history, &claims.Mark{Run: 9, ID: "lost", Revision: 900}, 500, false},
		"a mark of the present run":                         {history, &claims.Mark{Run: 5, ID: "own", Revision: 900}, 500, false},
		"a mark of a run that began after the own one, elsewhere": {
			claims.History{Runs: []claims.Run{{Number: 1, ID: "own", Began: 349}, {Number: 2, ID: "b", Began: 355}}}, &claims.Mark{Run: 2, ID: "b", Revision: 363}, 333, false,
		},
		"a mark of a run while the next is written down": {
			claims.History{Runs: []claims.Run{{Number: 3, ID: "c", Began: 300}, {Number: 4, ID: "d"}}}, &claims.Mark{Run: 3, ID: "c", Revision: 450}, 460, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.history.Behind(tc.mark, "own", tc.began); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestARunBeginsOnce(t *testing.T) {
	h, first, news := claims.History{}.Starts("a", 10)
	again, second, more := h.Starts("a", 12)
	if !news || more || first != second {
		t.Errorf("%v, news %t, and then %v, news %t", first, news, second, more)
	}
	if diff := cmp.Diff(h, again); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if again.Behind(&claims.Mark{Run: first.Number, ID: "a", Revision: 40}, "b", 50) {
		t.Error("a mark of the run counts as beyond its end")
	}
}

func TestABeginIsDelayedOnce(t *testing.T) {
	h, _, _ := claims.History{}.Starts("a", 10)
	h, begun, _ := h.Starts("b", 0)
	started, run, news := h.DelaysBegin("b", 40)
	_, _, again := started.DelaysBegin("b", 40)
	_, _, unknown := started.DelaysBegin("c", 50)
	last, ok := started.Last()
	_, none := claims.History{}.Last()
	if !news || again || unknown || begun.Began != 0 || run.Began != 40 || last != run || !ok || none {
		t.Errorf("news: %t, then %t and %t; %v started as %v; the last is %v, %t, of none %t", news, again, unknown, begun, run, last, ok, none)
	}
	if mark := (&claims.Mark{Run: 1, ID: "a", Revision: 41}); h.Behind(mark, "", 100) || !started.Behind(mark, "", 100) {
		t.Error("a run ends where the next was written down")
	}
}

func TestAMarkThatWentBack(t *testing.T) {
	then := &claims.Mark{Run: 2, ID: "b", Revision: 7}
	for name, tc := range map[string]struct {
		now, then *claims.Mark
		want      bool
	}{
		"none at all":                    {nil, nil, false},
		"the first":                      {then, nil, false},
		"the same":                       {then, then, false},
		"a later one of the same run":    {&claims.Mark{Run: 2, ID: "b", Revision: 8}, then, false},
		"one of a later run":             {&claims.Mark{Run: 3, ID: "c", Revision: 5}, then, false},
		"another run of the same number": {&claims.Mark{Run: 2, ID: "x", Revision: 5}, then, false},
		"an earlier one of the same run": {&claims.Mark{Run: 2, ID: "b", Revision: 6}, then, true},
		"one of an earlier run":          {&claims.Mark{Run: 1, ID: "a", Revision: 9}, then, true},
		"none any more":                  {nil, then, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.now.Before(tc.then); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	is, was := &claims.Mark{Run: 2, ID: "b", Revision: 7}, &claims.Mark{Run: 1, ID: "a", Revision: 5}
	full := claims.Copy{Mark: is, Before: was}
	for name, tc := range map[string]struct {
		copy claims.Copy
		mark *claims.Mark
		want bool
	}{
		"a member that does not say":                  {claims.Copy{}, nil, false},
		"a copy that does not say":                    {claims.Copy{}, was, true},
		"the same":                                    {full, is, false},
		"a member that was not told any more":         {full, was, false},
		"a member that was put back itself":           {full, &claims.Mark{Run: 1, ID: "a", Revision: 3}, false},
		"a member that has seen more by the same run": {full, &claims.Mark{Run: 2, ID: "b", Revision: 8}, true},
		"by the run before":                           {full, &claims.Mark{Run: 1, ID: "a", Revision: 6}, true},
		"by another run":                              {full, &claims.Mark{Run: 3, ID: "c", Revision: 6}, true},
		"by one whose number was given again":         {full, &claims.Mark{Run: 1, ID: "x", Revision: 3}, true},
		"the first mark of all, not told":             {claims.Copy{Mark: is}, nil, false},
		"a member that was claimed anew":              {claims.Copy{Mark: is, Before: is}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := claims.ParseCopy(tc.copy.Encode()).Older(tc.mark); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if !claims.ParseCopy("{").Older(is) {
		t.Error("what cannot be read is trusted")
	}
}

func TestReports(t *testing.T) {
	want := claims.Report{Mark: claims.Mark{Run: 2, ID: "b", Revision: 7}, Behind: true}
	if got, ok := claims.ParseReport(want.Encode()); !ok || got != want {
		t.Errorf("read back: %v, %t", got, ok)
	}
	for _, text := range []string{"", "null", "{}", `{"run":1,"id":"a"}`, `{"id":"a","revision":3}`, `{"run":1,"id":"` + strings.Repeat("a", 65) + `","revision":3}`, `{"run":"x"}`} {
		if got, ok := claims.ParseReport(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestAHoldFromItsBeginningToItsEnd(t *testing.T) {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	h, run, _ := claims.History{}.Starts("a", 10)
	if run != (claims.Run{Number: 1, ID: "a", Began: 10}) {
		t.Errorf("the first run is %v", run)
	}
	east, west := &claims.Mark{Run: 2, ID: "b", Revision: 50}, &claims.Mark{Run: 3, ID: "c", Revision: 40}
	h, first := h.WithHold("east", east, 20, now)
	h, second := h.WithHold("west", west, 21, now.Add(time.Hour))
	h, again := h.WithHold("west", west, 22, now.Add(time.Hour))
	if !first || !second || again {
		t.Errorf("news: %v, %v, %v", first, second, again)
	}
	want := &claims.Hold{Since: now, Clusters: []string{"east", "west"}, Store: 20, Seen: 50, Lost: []claims.Lost{{ID: "b", Revision: 50}, {ID: "c", Revision: 40}}}
	if diff := cmp.Diff(want, h.Hold); diff != "" {
		t.Errorf("hold (-want +got):\n%s", diff)
	}
	h = claims.ParseHistory(h.Encode()).Resumes()
	if diff := cmp.Diff(claims.History{Runs: []claims.Run{run}, Forgiven: []claims.Lost{{ID: "b", Revision: 50}, {ID: "c", Revision: 40}}}, h); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	if h.Behind(east, "own", 60) || h.Behind(west, "own", 60) {
		t.Error("what was forgiven counts")
	}
	later := &claims.Mark{Run: 2, ID: "b", Revision: 51}
	if !h.Behind(later, "own", 60) || !h.Outruns(later, 30) {
		t.Error("what the lost run did since does not count: it was none, but that of a store that this one is a copy of")
	}
	h, more := h.WithHold("east", later, 20, now)
	if got := h.Resumes(); !more || !got.Forgives(later) || !got.Forgives(east) || !got.Forgives(west) {
		t.Errorf("found once more: %v, and afterwards %+v", more, got)
	}
}

// TestWhatWasForgivenWhole: what an earlier version wrote was forgiven without end.
func TestWhatWasForgivenWhole(t *testing.T) {
	h := claims.ParseHistory(`{"runs":[{"number":1,"id":"a","began":10}],"forgiven":["b",{"id":"c","revision":40}]}`)
	want := []claims.Lost{{ID: "b"}, {ID: "c", Revision: 40}}
	if diff := cmp.Diff(want, h.Forgiven); diff != "" {
		t.Errorf("forgiven (-want +got):\n%s", diff)
	}
	if !h.Forgives(&claims.Mark{Run: 2, ID: "b", Revision: 1 << 40}) || h.Forgives(&claims.Mark{Run: 3, ID: "c", Revision: 41}) || h.Forgives(nil) {
		t.Error("more or less is forgiven than was said")
	}
}

func TestNext(t *testing.T) {
	run := claims.Run{Number: 2, ID: "b"}
	for name, tc := range map[string]struct {
		have     *claims.Mark
		seen     int64
		forgiven bool
		ok       bool
	}{
		"nothing concerned the member":         {nil, 0, false, false},
		"the first mark":                       {nil, 7, false, true},
		"nothing new":                          {&claims.Mark{Run: 1, ID: "a", Revision: 7}, 7, false, false},
		"something new":                        {&claims.Mark{Run: 1, ID: "a", Revision: 7}, 8, false, true},
		"a mark of what was lost and forgiven": {&claims.Mark{Run: 9, ID: "x", Revision: 70}, 8, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			next, ok := claims.Next(tc.have, run, tc.seen, tc.forgiven)
			if ok != tc.ok || ok && next != (claims.Mark{Run: 2, ID: "b", Revision: tc.seen}) {
				t.Errorf("got %v, %v", next, ok)
			}
		})
	}
}

// TestWhoseMarkAStartWrites: what the run before did not come to mark is marked in its name,
// and only that.
func TestWhoseMarkAStartWrites(t *testing.T) {
	last := claims.Run{Number: 2, ID: "two", Began: 100}
	of := func(runs ...claims.Run) claims.History { return claims.History{Runs: runs} }
	lost := of(last)
	lost.Forgiven = []claims.Lost{{ID: "two", Revision: 160}}
	for name, c := range map[string]struct {
		history     claims.History
		seen, began int64
		want        bool
	}{
		"what was seen before the start is the last run's":         {of(last), 150, 150, true},
		"what was seen since is not":                               {of(last), 151, 150, false},
		"there was no run":                                         {of(), 150, 150, false},
		"the last run is still being written down":                 {of(claims.Run{Number: 2, ID: "two"}), 150, 150, false},
		"that much of the last run was lost, and is not told from": {lost, 150, 150, false},
		"the last run has gone on since something of it was lost":  {lost, 161, 170, true},
	} {
		t.Run(name, func(t *testing.T) {
			run, ok := c.history.Lends(c.seen, c.began)
			if ok != c.want || ok && run != last {
				t.Errorf("got %+v, %t", run, ok)
			}
		})
	}
}

// TestWhoWaits: the word of one cluster holds that one, that of two all.
func TestWhoWaits(t *testing.T) {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	mark := &claims.Mark{Run: 2, ID: "b", Revision: 50}
	h, _ := claims.History{}.WithHold("east", mark, 20, now)
	h, _ = h.WithHold("east", &claims.Mark{Run: 3, ID: "c", Revision: 60}, 20, now) // says it again
	if h.Hold.Whole() || h.Hold.Of("east") == nil || h.Hold.Of("west") != nil || !strings.Contains(h.Hold.Describe(), "in that cluster; all wait once a second one says the same") {
		t.Errorf("one cluster holds all: %+v, %s", h.Hold, h.Hold.Describe())
	}
	h, _ = h.WithHold("north", mark, 20, now)
	if !h.Hold.Whole() || h.Hold.Of("west") == nil || !strings.Contains(h.Hold.Describe(), "nothing is changed or removed in clusters") {
		t.Errorf("two clusters do not hold all: %+v, %s", h.Hold, h.Hold.Describe())
	}
	if none := h.Resumes().Hold; none.Of("east") != nil {
		t.Error("it waits though nothing is held")
	}
}

// TestWhatIsToldOfAHold fits into a condition, and does not depend on who was found
// first.
func TestWhatIsToldOfAHold(t *testing.T) {
	var all []string
	for i := range 2000 {
		all = append(all, fmt.Sprintf("cluster-%04d", i))
	}
	forth := claims.Hold{Clusters: all, Store: 5, Seen: 7}
	back := forth
	back.Clusters = slices.Clone(all)
	slices.Reverse(back.Clusters)
	text := forth.Describe()
	if text != back.Describe() {
		t.Errorf("it is told as %q and as %q", text, back.Describe())
	}
	if want := "cluster-0000, cluster-0001, cluster-0002, cluster-0003, cluster-0004 and 1995 more had seen 7"; !strings.Contains(text, want) {
		t.Errorf("%q, want %q in it", text, want)
	}
}

func TestAMarkThatIsTooLong(t *testing.T) {
	claim := claims.Claim{Hub: "one", Cluster: "east", Mark: &claims.Mark{Run: 1, ID: strings.Repeat("a", 65), Revision: 3}}
	if got, err := claims.Parse(claim.Encode()); !errors.Is(err, claims.ErrMalformed) {
		t.Errorf("Parse = %v, %v", got, err)
	}
}
