package rules_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

func TestNumber(t *testing.T) {
	cases := map[string]struct {
		value any
		want  int64
	}{
		"a number":            {int64(7), 7},
		"a small one":         {int32(7), 7},
		"a plain one":         {7, 7},
		"a fraction":          {7.9, 7},
		"JSON's own":          {json.Number("7"), 7},
		"no number in JSON's": {json.Number("x"), 0},
		"too large":           {1e300, math.MaxInt64},
		"too small":           {-1e300, math.MinInt64},
		"not a number":        {math.NaN(), 0},
		"a text":              {"7", 0},
		"nothing":             {nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rules.Number(map[string]any{"a": map[string]any{"b": tc.value}}, "a", "b"); got != tc.want {
				t.Errorf("number = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	in := map[string]any{"running": map[string]any{"startedAt": "2026-01-01T02:00:00.5+02:00", "more": "x"}, "odd": int64(1)}
	got, ok := rules.Canonical[corev1.ContainerState](in)
	want := map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("as a server writes it (-want +got):\n%s", diff)
	}
	if _, ok := rules.Canonical[corev1.ContainerState](map[string]any{"running": "yes"}); ok {
		t.Error("what is no state passes for one")
	}
}

// TestSteps checks how steps make one status of those that clusters report.
func TestSteps(t *testing.T) {
	cases := map[string]struct {
		template string
		// reported are the statuses of the clusters b and a.
		reported [2]string
		steps    []rules.Step
		want     string
	}{
		"sums leave out what is less than nothing, and end where a server's numbers do": {
			`{}`, [2]string{`{"a":2000000000,"b":-3,"c":"x"}`, `{"a":4000000000000,"b":5,"c":1}`},
			[]rules.Step{rules.Sum("a", "b", "c", "d")}, `{"a":2147483647,"b":5,"c":1,"d":0}`,
		},
		"no more are ready than there are": {
			`{}`, [2]string{`{"replicas":1,"ready":5,"odd":0}`, `{"replicas":1}`},
			[]rules.Step{rules.Sum("replicas", "ready"), rules.AtMost("replicas", "ready", "none")}, `{"ready":2,"replicas":2}`,
		},
		"lists are collected, sorted, each entry once": {
			`{}`, [2]string{`{"x":{"l":["c","a"]}}`, `{"x":{"l":["b","a"]}}`},
			[]rules.Step{rules.Collect("x", "l"), rules.Collect("x", "none")}, `{"x":{"l":["a","b","c"]}}`,
		},
		"a list that has gone is emptied": {
			`{status: {l: [a]}}`, [2]string{`{}`, `{"l":7}`}, []rules.Step{rules.Collect("l")}, `{"l":[]}`,
		},
		"what stands in the way of a list goes": {
			`{status: {x: 7}}`, [2]string{`{"x":{"l":[1]}}`, `{}`}, []rules.Step{rules.Collect("x", "l")}, `{"x":{"l":[1]}}`,
		},
		"the first word that any cluster says": {
			`{}`, [2]string{`{"phase":"Good"}`, `{}`}, []rules.Step{rules.Phase("Odd", "Bad", "Odd", "Good")}, `{"phase":"Odd"}`,
		},
		"words that nobody knows count for nothing": {
			`{status: {phase: Good}}`, [2]string{`{"phase":"1"}`, `{"phase":2}`}, []rules.Step{rules.Phase("Odd", "Bad")}, `{"phase":"Good"}`,
		},
		"a status that is no object counts as none": {
			`{status: fine}`, [2]string{`"fine"`, `[1]`}, []rules.Step{rules.Sum("a")}, `{"a":0}`,
		},
		"a generation is observed once all have": {
			`{metadata: {generation: 2}}`,
			[2]string{`{"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2}`, `{"generation":7,"observedGeneration":8,"resourceTemplateGeneration":3}`},
			[]rules.Step{rules.Observe}, `{"observedGeneration":2}`,
		},
		"not before": {
			`{metadata: {generation: 2}, status: {observedGeneration: 1}}`,
			[2]string{`{"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2}`, `{"generation":7,"observedGeneration":6,"resourceTemplateGeneration":2}`},
			[]rules.Step{rules.Observe}, `{"observedGeneration":1}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items := []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "b", Status: &runtime.RawExtension{Raw: []byte(tc.reported[0])}},
				{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(tc.reported[1])}},
			}
			status, err := rules.Aggregate(tc.steps...)(object(t, tc.template), items)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(status)
			if err != nil || string(got) != tc.want {
				t.Errorf("status\n got %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestReady(t *testing.T) {
	cases := map[string]struct {
		object string
		want   bool
	}{
		"ready":                                {`{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True"}]}}`, true},
		"ready for the latest":                 {`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, true},
		"the latest was not looked at":         {`{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, false},
		"the condition is about another":       {`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, false},
		"not ready":                            {`{status: {conditions: [{type: Ready, status: "False"}]}}`, false},
		"no condition":                         {`{status: {conditions: [7, {type: Other, status: "True"}]}}`, false},
		"conditions that are no list":          {`{status: {conditions: {Ready: "True"}}}`, false},
		"an object that says nothing about it": {`{}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := rules.Ready("Ready")(object(t, tc.object)); got != tc.want || err != nil {
				t.Errorf("healthy = %v, %v", got, err)
			}
		})
	}
}
