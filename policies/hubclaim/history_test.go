package hubclaim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

func TestBehind(t *testing.T) {
	history := hubclaim.History{Runs: []hubclaim.Run{{Number: 3, ID: "c", Began: 300}, {Number: 4, ID: "d", Began: 400}}, Forgiven: []hubclaim.Lost{{ID: "lost"}}}
	for name, tc := range map[string]struct {
		history hubclaim.History
		mark    *hubclaim.Mark
		began   int64
		want    bool
	}{
		"a member without a mark":                           {history, nil, 500, false},
		"a mark of the run before, within it":               {history, &hubclaim.Mark{Run: 4, ID: "d", Revision: 450}, 500, false},
		"a mark beyond what the store has":                  {history, &hubclaim.Mark{Run: 4, ID: "d", Revision: 501}, 500, true},
		"a mark of an earlier run, within it":               {history, &hubclaim.Mark{Run: 3, ID: "c", Revision: 399}, 500, false},
		"a mark beyond its run, though the store has grown": {history, &hubclaim.Mark{Run: 3, ID: "c", Revision: 450}, 500, true},
		"a mark of a run that the store does not know":      {history, &hubclaim.Mark{Run: 5, ID: "e", Revision: 100}, 500, true},
		"a mark of a run whose number was given again":      {history, &hubclaim.Mark{Run: 4, ID: "x", Revision: 100}, 500, true},
		"a mark of a run that is too long ago":              {history, &hubclaim.Mark{Run: 2, ID: "b", Revision: 250}, 500, false},
		"a mark that the store has forgotten everything of": {hubclaim.History{}, &hubclaim.Mark{Run: 1, ID: "a", Revision: 2}, 500, true},
		"a mark of a lost run that was forgiven":            {history, &hubclaim.Mark{Run: 9, ID: "lost", Revision: 900}, 500, false},
		"a mark of the present run":                         {history, &hubclaim.Mark{Run: 5, ID: "own", Revision: 900}, 500, false},
		"a mark of a run that began after the own one, elsewhere": {
			hubclaim.History{Runs: []hubclaim.Run{{Number: 1, ID: "own", Began: 349}, {Number: 2, ID: "b", Began: 355}}}, &hubclaim.Mark{Run: 2, ID: "b", Revision: 363}, 333, false,
		},
		"a mark of a run while the next is written down": {
			hubclaim.History{Runs: []hubclaim.Run{{Number: 3, ID: "c", Began: 300}, {Number: 4, ID: "d"}}}, &hubclaim.Mark{Run: 3, ID: "c", Revision: 450}, 460, false,
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
	h, first, changed := hubclaim.History{}.Starts("a", 10)
	again, second, more := h.Starts("a", 12)
	if !changed || more || first != second {
		t.Errorf("%v, news %t, and then %v, news %t", first, changed, second, more)
	}
	if diff := cmp.Diff(h, again); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if again.Behind(&hubclaim.Mark{Run: first.Number, ID: "a", Revision: 40}, "b", 50) {
		t.Error("a mark of the run counts as beyond its end")
	}
}

func TestABeginIsDelayedOnce(t *testing.T) {
	h, _, _ := hubclaim.History{}.Starts("a", 10)
	h, begun, _ := h.Starts("b", 0)
	started, run, changed := h.DelaysBegin("b", 40)
	_, _, again := started.DelaysBegin("b", 40)
	_, _, unknown := started.DelaysBegin("c", 50)
	last, ok := started.Last()
	_, none := hubclaim.History{}.Last()
	if !changed || again || unknown || begun.Began != 0 || run.Began != 40 || last != run || !ok || none {
		t.Errorf("news: %t, then %t and %t; %v started as %v; the last is %v, %t, of none %t", changed, again, unknown, begun, run, last, ok, none)
	}
	if mark := (&hubclaim.Mark{Run: 1, ID: "a", Revision: 41}); h.Behind(mark, "", 100) || !started.Behind(mark, "", 100) {
		t.Error("a run ends where the next was written down")
	}
}

func TestAMarkThatWentBack(t *testing.T) {
	then := &hubclaim.Mark{Run: 2, ID: "b", Revision: 7}
	for name, tc := range map[string]struct {
		now, then *hubclaim.Mark
		want      bool
	}{
		"none at all":                    {nil, nil, false},
		"the first":                      {then, nil, false},
		"the same":                       {then, then, false},
		"a later one of the same run":    {&hubclaim.Mark{Run: 2, ID: "b", Revision: 8}, then, false},
		"one of a later run":             {&hubclaim.Mark{Run: 3, ID: "c", Revision: 5}, then, false},
		"another run of the same number": {&hubclaim.Mark{Run: 2, ID: "x", Revision: 5}, then, false},
		"an earlier one of the same run": {&hubclaim.Mark{Run: 2, ID: "b", Revision: 6}, then, true},
		"one of an earlier run":          {&hubclaim.Mark{Run: 1, ID: "a", Revision: 9}, then, true},
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
	is, was := &hubclaim.Mark{Run: 2, ID: "b", Revision: 7}, &hubclaim.Mark{Run: 1, ID: "a", Revision: 5}
	full := hubclaim.Copy{Mark: is, Before: was}
	for name, tc := range map[string]struct {
		copy hubclaim.Copy
		mark *hubclaim.Mark
		want bool
	}{
		"a member that does not say":                  {hubclaim.Copy{}, nil, false},
		"a copy that does not say":                    {hubclaim.Copy{}, was, true},
		"the same":                                    {full, is, false},
		"a member that was not told any more":         {full, was, false},
		"a member that was put back itself":           {full, &hubclaim.Mark{Run: 1, ID: "a", Revision: 3}, false},
		"a member that has seen more by the same run": {full, &hubclaim.Mark{Run: 2, ID: "b", Revision: 8}, true},
		"by the run before":                           {full, &hubclaim.Mark{Run: 1, ID: "a", Revision: 6}, true},
		"by another run":                              {full, &hubclaim.Mark{Run: 3, ID: "c", Revision: 6}, true},
		"by one whose number was given again":         {full, &hubclaim.Mark{Run: 1, ID: "x", Revision: 3}, true},
		"the first mark of all, not told":             {hubclaim.Copy{Mark: is}, nil, false},
		"a member that was claimed anew":              {hubclaim.Copy{Mark: is, Before: is}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hubclaim.ParseCopy(tc.copy.Encode()).Older(tc.mark); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if !hubclaim.ParseCopy("{").Older(is) {
		t.Error("what cannot be read is trusted")
	}
}

func TestReports(t *testing.T) {
	want := hubclaim.Report{Mark: hubclaim.Mark{Run: 2, ID: "b", Revision: 7}, Behind: true}
	if got, ok := hubclaim.ParseReport(want.Encode()); !ok || got != want {
		t.Errorf("read back: %v, %t", got, ok)
	}
	for _, text := range []string{"", "null", "{}", `{"run":1,"id":"a"}`, `{"id":"a","revision":3}`, `{"run":1,"id":"` + strings.Repeat("a", 65) + `","revision":3}`, `{"run":"x"}`} {
		if got, ok := hubclaim.ParseReport(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestAHoldFromItsBeginningToItsEnd(t *testing.T) {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	h, run, _ := hubclaim.History{}.Starts("a", 10)
	if run != (hubclaim.Run{Number: 1, ID: "a", Began: 10}) {
		t.Errorf("the first run is %v", run)
	}
	east, west := &hubclaim.Mark{Run: 2, ID: "b", Revision: 50}, &hubclaim.Mark{Run: 3, ID: "c", Revision: 40}
	h, first := h.WithHold("east", east, 20, now)
	h, second := h.WithHold("west", west, 21, now.Add(time.Hour))
	h, again := h.WithHold("west", west, 22, now.Add(time.Hour))
	if !first || !second || again {
		t.Errorf("news: %v, %v, %v", first, second, again)
	}
	want := &hubclaim.Hold{Since: now, Clusters: []string{"east", "west"}, Store: 20, Seen: 50, Lost: []hubclaim.Lost{{ID: "b", Revision: 50}, {ID: "c", Revision: 40}}}
	if diff := cmp.Diff(want, h.Hold); diff != "" {
		t.Errorf("hold (-want +got):\n%s", diff)
	}
	h = hubclaim.ParseHistory(h.Encode()).Resumes()
	if diff := cmp.Diff(hubclaim.History{Runs: []hubclaim.Run{run}, Forgiven: []hubclaim.Lost{{ID: "b", Revision: 50}, {ID: "c", Revision: 40}}}, h); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	if h.Behind(east, "own", 60) || h.Behind(west, "own", 60) {
		t.Error("what was forgiven counts")
	}
	later := &hubclaim.Mark{Run: 2, ID: "b", Revision: 51}
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
	h := hubclaim.ParseHistory(`{"runs":[{"number":1,"id":"a","began":10}],"forgiven":["b",{"id":"c","revision":40}]}`)
	want := []hubclaim.Lost{{ID: "b"}, {ID: "c", Revision: 40}}
	if diff := cmp.Diff(want, h.Forgiven); diff != "" {
		t.Errorf("forgiven (-want +got):\n%s", diff)
	}
	if !h.Forgives(&hubclaim.Mark{Run: 2, ID: "b", Revision: 1 << 40}) || h.Forgives(&hubclaim.Mark{Run: 3, ID: "c", Revision: 41}) || h.Forgives(nil) {
		t.Error("more or less is forgiven than was said")
	}
}

func TestNext(t *testing.T) {
	run := hubclaim.Run{Number: 2, ID: "b"}
	for name, tc := range map[string]struct {
		have     *hubclaim.Mark
		seen     int64
		forgiven bool
		ok       bool
	}{
		"nothing concerned the member":         {nil, 0, false, false},
		"the first mark":                       {nil, 7, false, true},
		"nothing new":                          {&hubclaim.Mark{Run: 1, ID: "a", Revision: 7}, 7, false, false},
		"something new":                        {&hubclaim.Mark{Run: 1, ID: "a", Revision: 7}, 8, false, true},
		"a mark of what was lost and forgiven": {&hubclaim.Mark{Run: 9, ID: "x", Revision: 70}, 8, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			next, ok := hubclaim.Next(tc.have, run, tc.seen, tc.forgiven)
			if ok != tc.ok || ok && next != (hubclaim.Mark{Run: 2, ID: "b", Revision: tc.seen}) {
				t.Errorf("got %v, %v", next, ok)
			}
		})
	}
}

// TestWhoseMarkAStartWrites: what the run before did not come to mark is marked in its name,
// and only that.
func TestWhoseMarkAStartWrites(t *testing.T) {
	last := hubclaim.Run{Number: 2, ID: "two", Began: 100}
	of := func(runs ...hubclaim.Run) hubclaim.History { return hubclaim.History{Runs: runs} }
	lost := of(last)
	lost.Forgiven = []hubclaim.Lost{{ID: "two", Revision: 160}}
	for name, c := range map[string]struct {
		history     hubclaim.History
		seen, began int64
		want        bool
	}{
		"what was seen before the start is the last run's":         {of(last), 150, 150, true},
		"what was seen since is not":                               {of(last), 151, 150, false},
		"there was no run":                                         {of(), 150, 150, false},
		"the last run is still being written down":                 {of(hubclaim.Run{Number: 2, ID: "two"}), 150, 150, false},
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
	mark := &hubclaim.Mark{Run: 2, ID: "b", Revision: 50}
	h, _ := hubclaim.History{}.WithHold("east", mark, 20, now)
	h, _ = h.WithHold("east", &hubclaim.Mark{Run: 3, ID: "c", Revision: 60}, 20, now) // says it again
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

// TestWhatIsReportedOfAHold fits into a condition, and does not depend on who was found
// first.
func TestWhatIsReportedOfAHold(t *testing.T) {
	var all []string
	for i := range 2000 {
		all = append(all, fmt.Sprintf("cluster-%04d", i))
	}
	forth := hubclaim.Hold{Clusters: all, Store: 5, Seen: 7}
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
	claim := hubclaim.Claim{Hub: "one", Cluster: "east", Mark: &hubclaim.Mark{Run: 1, ID: strings.Repeat("a", 65), Revision: 3}}
	if got, err := hubclaim.Parse(claim.Encode()); !errors.Is(err, hubclaim.ErrMalformed) {
		t.Errorf("Parse = %v, %v", got, err)
	}
}
