package unfit

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// refused are refusals by the texts of one plugin.
func refused(plugin string, texts ...string) []Reason {
	out := make([]Reason, len(texts))
	for i, text := range texts {
		out[i] = Reason{Plugin: plugin, Text: text}
	}
	return out
}

func TestReasonsAreCountedAndSorted(t *testing.T) {
	got := New(append(refused("harbor", "had no quay", "had no crane", "had no quay"), refused("taints", "had a taint")...))
	want := &Error{Clusters: 4, Reasons: []Reason{{"harbor", "had no quay", 2}, {"taints", "had a taint", 1}, {"harbor", "had no crane", 1}}} // equally frequent ones by text
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// many are n reasons, of which the first is the most frequent.
func many(n int, last string) []Reason {
	var texts []string
	for i := range n {
		for range n - i {
			texts = append(texts, fmt.Sprintf("had reason %d", i))
		}
	}
	return refused("harbor", append(texts, last)...)
}

func TestMessagesAndCauses(t *testing.T) {
	cases := map[string]struct {
		refusals []Reason
		message  string
	}{
		"no cluster":   {message: "0/0 clusters are available: no cluster has joined."},
		"one reason":   {refusals: refused("harbor", "had no quay"), message: "0/1 clusters are available: 1 had no quay."},
		"some reasons": {refusals: refused("harbor", "had no quay", "had no crane", "had no quay"), message: "0/3 clusters are available: 2 had no quay, 1 had no crane."},
		"more than a message names": {refusals: many(6, "had another"),
			message: "0/22 clusters are available: 6 had reason 0, 5 had reason 1, 4 had reason 2, 3 had reason 3, 2 had reason 4, and 2 more reasons."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := New(tc.refusals).Error(); got != tc.message {
				t.Errorf("says %q, want %q", got, tc.message)
			}
		})
	}
}

func TestCausesDistinguishReasons(t *testing.T) {
	few := func(texts ...string) string { return New(refused("harbor", texts...)).Cause() }
	if few("a", "b", "b") != few("b", "a") {
		t.Error("it makes a difference how many clusters were refused")
	}
	if few("a") == few("b") || few("a", "b") == few("ab") {
		t.Error("other reasons have the same cause")
	}
	// Of many reasons those count that the message names, and the plugins of the others.
	if New(many(6, "had another")).Cause() != New(many(6, "had yet another")).Cause() {
		t.Error("a reason that no message names makes a difference")
	}
	if New(many(6, "had another")).Cause() == New(append(many(6, "had another"), refused("taints", "had a taint")...)).Cause() {
		t.Error("another plugin makes no difference")
	}
}

func TestAnEarlierMessageIsStillTrue(t *testing.T) {
	before := New(many(6, "had another")).Cause()
	other := many(7, "had another")
	for i := range other {
		other[i].Plugin = "taints"
	}
	cases := map[string]struct {
		now   *Error
		cause string
		want  bool
	}{
		"the same reasons":                   {now: New(many(6, "had another")), cause: before, want: true},
		"one that was not named has gone":    {now: New(many(6, "had reason 0")), cause: before, want: true},
		"one that was named has gone":        {now: New(many(6, "had another")[6:]), cause: before},
		"there are few by now":               {now: New(refused("harbor", "had reason 0")), cause: before},
		"all that there are were named":      {now: New(many(5, "had reason 0")), cause: before},
		"other plugins refuse":               {now: New(other), cause: before},
		"the message named all there were":   {now: New(many(6, "had another")), cause: New(refused("harbor", "had reason 0")).Cause()},
		"there was no such message, nothing": {now: New(nil), cause: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.now.BearsOut(tc.cause); got != tc.want {
				t.Errorf("borne out: %t, want %t", got, tc.want)
			}
		})
	}
}
