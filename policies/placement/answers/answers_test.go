package answers_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement/answers"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestOf says which answers a record names.
func TestOf(t *testing.T) {
	many := map[string]estimate.Answer{}
	for i := range 20 {
		many[fmt.Sprintf("c-%02d", i)] = estimate.Answer{Fits: 1}
	}
	names := func(from, to int, more ...string) (out []answers.Answer) {
		for i := from; i < to; i++ {
			out = append(out, answers.Answer{Cluster: fmt.Sprintf("c-%02d", i), Takes: 1})
		}
		for _, name := range more {
			out = append(out, answers.Answer{Cluster: name, Takes: 1})
		}
		return out
	}
	for name, tc := range map[string]struct {
		answers    map[string]estimate.Answer
		held       map[string]int32
		chosen     []string
		want       []answers.Answer
		unreported []answers.Unreported
	}{
		"nobody was asked":               {},
		"none has a bound":               {answers: map[string]estimate.Answer{"a": {Fits: math.MaxInt32}}},
		"nothing fits":                   {answers: map[string]estimate.Answer{"a": {}}, want: []answers.Answer{{Cluster: "a"}}},
		"what runs there counts as well": {answers: map[string]estimate.Answer{"b": {Fits: 3}, "a": {Fits: 1}}, held: map[string]int32{"b": 2}, want: []answers.Answer{{Cluster: "a", Takes: 1}, {Cluster: "b", Takes: 5}}},
		"old ones":                       {answers: map[string]estimate.Answer{"a": {Fits: 3, Age: 90 * time.Second}, "b": {Fits: 3, Age: 1}}, want: []answers.Answer{{Cluster: "a", Takes: 3, Age: "1m30s"}, {Cluster: "b", Takes: 3, Age: "1s"}}},
		"some could not answer":          {answers: map[string]estimate.Answer{"a": {}}, want: []answers.Answer{{Cluster: "a"}}, unreported: []answers.Unreported{{"b", "the label zone"}, {"c", "the label zone"}}},
		"none could answer":              {unreported: []answers.Unreported{{"b", "the names of its nodes"}}},
		"of many the first":              {answers: many, want: names(0, 16)},
		"of many those that are chosen, and those that it ran in": {answers: many, held: map[string]int32{"c-18": 0}, chosen: []string{"c-19"}, want: names(0, 14, "c-18", "c-19")},
	} {
		t.Run(name, func(t *testing.T) {
			unreported := map[string]string{}
			for _, u := range tc.unreported {
				unreported[u.Cluster] = u.What
			}
			got := answers.Of(tc.answers, unreported, tc.held, tc.chosen, noon.Add(time.Millisecond))
			var want *answers.Record
			if tc.want != nil || tc.unreported != nil {
				want = &answers.Record{At: metav1.NewTime(noon), Clusters: tc.want, Unreported: tc.unreported}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(unreported) > 0 && !cmp.Equal(got.Why(), unreported) {
				t.Errorf("later it says %v", got.Why())
			}
		})
	}
}

// TestNow says what answers count for later.
func TestNow(t *testing.T) {
	asked := &answers.Record{At: metav1.NewTime(noon), Clusters: []answers.Answer{
		{Cluster: "a", Takes: 5}, {Cluster: "b", Takes: 2, Age: "1m0s"}, {Cluster: "c", Takes: 1, Age: "a while"}, {Cluster: "d", Takes: math.MaxInt64},
	}}
	want := map[string]estimate.Answer{
		"a": {Fits: 2, Age: 12 * time.Second},            // three of five were given to it
		"b": {Fits: 0, Excess: 2, Age: 72 * time.Second}, // it runs more than it was to take
		"d": {Fits: math.MaxInt32 - 1, Age: 12 * time.Second},
	}
	if diff := cmp.Diff(want, asked.Now(map[string]int32{"a": 3, "b": 4}, noon.Add(12*time.Second))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (*answers.Record)(nil).Now(nil, noon); got != nil {
		t.Errorf("nothing was answered, and counts: %v", got)
	}
}
