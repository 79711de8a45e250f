package rules_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// stepCase is a step, and the status that it makes.
type stepCase struct {
	// status of the template.
	status string
	// reported are the statuses of the clusters a, b, …; "-" for a cluster that
	// reports none.
	reported []string
	step     rules.Step
	want     string
}

// runSteps applies the step of each case, and again to its result, which must not
// change. Reports must not be changed either.
func runSteps(t *testing.T, cases map[string]stepCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := object(t, `{status: `+tc.status+`}`)
			r := reportsOf(t, `{metadata: {generation: 2, creationTimestamp: "2025-01-01T00:00:00Z"}}`, tc.reported)
			status, want := rules.StatusOf(template), object(t, tc.want).Object
			for _, when := range []string{"once", "twice"} {
				tc.step(status, r)
				if diff := cmp.Diff(want, read(t, status)); diff != "" {
					t.Errorf("status, %s (-want +got):\n%s", when, diff)
				}
			}
			if diff := cmp.Diff(reportsOf(t, `{}`, tc.reported).Parts, r.Parts); diff != "" {
				t.Errorf("what clusters report was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// reportsOf returns what the clusters a, b, … report of the template.
func reportsOf(t *testing.T, template string, reported []string) rules.Reports {
	t.Helper()
	r := rules.Reports{Template: object(t, template)}
	for i, text := range reported {
		part := rules.Part{Cluster: string(rune('a' + i))}
		if text != "-" {
			part.Status = object(t, text).Object
		}
		r.Parts = append(r.Parts, part)
	}
	return r
}

// read returns the status as an API server would hold it.
func read(t *testing.T, status map[string]any) map[string]any {
	t.Helper()
	data, err := utiljson.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// long is longer than mostText.
var long = strings.Repeat("x", 1025)

// TestAgreement checks that a field gets the value that clusters agree on, not
// counting those without one, and goes where they differ.
func TestAgreement(t *testing.T) {
	runSteps(t, map[string]stepCase{
		"a text that all say":                   {`{v: old}`, []string{`{v: x}`, `{v: x}`}, rules.Same("v"), `{v: x}`},
		"a text of some, others say nothing":    {`{}`, []string{`{v: ""}`, `{v: x}`, `{}`, "-"}, rules.Same("v"), `{v: x}`},
		"two texts":                             {`{v: old, w: kept}`, []string{`{v: x}`, `{v: z}`}, rules.Same("v"), `{w: kept}`},
		"no text":                               {`{v: old}`, []string{`{v: 1}`, `{v: 1}`}, rules.Same("v"), `{}`},
		"a text that is too long":               {`{v: old}`, []string{`{v: ` + long + `}`}, rules.Same("v"), `{}`},
		"nothing that any says":                 {`{v: old}`, []string{`{}`, "-"}, rules.Same("v"), `{}`},
		"no cluster":                            {`{v: old}`, nil, rules.Same("v"), `{}`},
		"several fields, each for itself":       {`{}`, []string{`{v: x, w: u}`, `{v: z, w: u}`}, rules.Same("v", "w"), `{w: u}`},
		"objects that are alike":                {`{}`, []string{`{v: {a: [1]}}`, `{v: {a: [1]}}`}, rules.Alike("v"), `{v: {a: [1]}}`},
		"objects that are not":                  {`{v: 1}`, []string{`{v: {a: [1]}}`, `{v: {a: [2]}}`}, rules.Alike("v"), `{}`},
		"what the first has that has any":       {`{v: 1}`, []string{"-", `{w: 2}`, `{v: [3]}`, `{v: 4}`}, rules.First("v", "w"), `{v: [3], w: 2}`},
		"what none has":                         {`{v: 1}`, []string{`{}`}, rules.First("v"), `{}`},
		"a boolean that is true everywhere":     {`{}`, []string{`{v: true}`, `{v: true}`}, rules.Everywhere("v"), `{v: true}`},
		"a boolean that is not true everywhere": {`{v: true}`, []string{`{v: true}`, "-"}, rules.Everywhere("v"), `{v: false}`},
		"a boolean that is nowhere":             {`{v: true}`, nil, rules.Everywhere("v"), `{v: false}`},
	})
}

// TestWorst checks that the worst word counts, in the order of the words, and that
// the word of an only cluster counts whether or not it is known.
func TestWorst(t *testing.T) {
	step := rules.Worst("state", "Pending", "Failed", rules.Others, "Pending", "Running")
	closed := rules.Worst("job.state", "", "Failed", "Running")
	whole := rules.FromWorst("why", "job.state", "", "Failed", "Running")
	text := rules.TextOfWorst("why", "job.state", "Lost", "Lost", "Failed", "Running")
	runSteps(t, map[string]stepCase{
		"the worst of several":                        {`{}`, []string{`{state: Running}`, `{state: Failed}`, `{state: New}`}, step, `{state: Failed}`},
		"a word that is not known, among others":      {`{}`, []string{`{state: Running}`, `{state: New}`, "-"}, step, `{state: New}`},
		"the first of two that are not known":         {`{}`, []string{`{state: New}`, `{state: Newer}`}, step, `{state: New}`},
		"what is missing counts as said":              {`{}`, []string{`{state: Running}`, "-"}, step, `{state: Pending}`},
		"a word that is too long is passed over":      {`{}`, []string{`{state: ` + long + `}`, `{state: Running}`}, step, `{state: Running}`},
		"the only cluster's, whatever it is":          {`{}`, []string{`{state: New}`}, step, `{state: New}`},
		"the only cluster's, if it can be a word":     {`{state: Running, job: 1}`, []string{`{state: ` + long + `}`}, step, `{job: 1}`},
		"words below a path":                          {`{job: {id: 7}}`, []string{`{job: {state: Running}}`, `{job: {state: Failed}}`}, closed, `{job: {id: 7, state: Failed}}`},
		"words that nobody knows, where none may be":  {`{job: {id: 7, state: Running}}`, []string{`{job: {state: New}}`, `{job: {state: Newer}}`}, closed, `{job: {id: 7}}`},
		"nothing said, and nothing there":             {`{}`, []string{"-", "-"}, closed, `{}`},
		"a field of the cluster with the worst":       {`{why: old}`, []string{`{why: [1], job: {state: Running}}`, `{why: [2], job: {state: Failed}}`}, whole, `{why: [2]}`},
		"the first of them that has the field":        {`{}`, []string{`{job: {state: Failed}}`, `{why: 2, job: {state: Failed}}`, `{why: 3, job: {state: Failed}}`}, whole, `{why: 2}`},
		"the cluster with the worst has no field":     {`{why: old}`, []string{`{why: 1, job: {state: Running}}`, `{job: {state: Failed}}`}, whole, `{}`},
		"no cluster says how it is":                   {`{why: old}`, []string{`{why: 1}`, `{why: 2}`}, whole, `{}`},
		"a text of the cluster with the worst":        {`{}`, []string{`{why: x, job: {state: Running}}`, `{why: z, job: {state: Failed}}`}, text, `{why: z}`},
		"a text of one that does not say how it is":   {`{}`, []string{`{why: x, job: {state: Failed}}`, `{why: z}`}, text, `{why: z}`},
		"a text that is cut":                          {`{}`, []string{`{why: ` + long + `, job: {state: Failed}}`}, text, `{why: ` + long[:1021] + `…}`},
		"what is no text of the cluster with worst":   {`{why: old}`, []string{`{why: 7, job: {state: Failed}}`}, text, `{}`},
		"no text where no cluster is":                 {`{why: old}`, nil, text, `{}`},
		"a text that is empty is not written, either": {`{why: old}`, []string{`{why: "", job: {state: Failed}}`}, text, `{}`},
	})
}

// TestTimes checks that times are compared as times, and written as API servers
// write them.
func TestTimes(t *testing.T) {
	const one, two = `"2026-01-01T00:00:00Z"`, `"2026-01-01T02:00:00+01:00"`
	runSteps(t, map[string]stepCase{
		"the first":                         {`{v: old}`, []string{`{v: ` + two + `}`, `{v: ` + one + `}`, "-"}, rules.Earliest("v"), `{v: ` + one + `}`},
		"the last":                          {`{v: old}`, []string{`{v: ` + two + `}`, `{v: ` + one + `}`, `{v: soon}`}, rules.Latest("v"), `{v: "2026-01-01T01:00:00Z"}`},
		"the last, once all have one":       {`{}`, []string{`{v: ` + one + `}`, `{v: ` + two + `}`}, rules.Ended("v"), `{v: "2026-01-01T01:00:00Z"}`},
		"none while one has none":           {`{v: old}`, []string{`{v: ` + one + `}`, `{}`}, rules.Ended("v"), `{}`},
		"none where none is":                {`{v: old}`, []string{`{v: soon}`}, rules.Latest("v"), `{}`},
		"none where no cluster is":          {`{v: old}`, nil, rules.Ended("v"), `{}`},
		"several fields, each for itself":   {`{}`, []string{`{v: ` + one + `}`, `{w: ` + one + `}`}, rules.Earliest("v", "w"), `{v: ` + one + `, w: ` + one + `}`},
		"the zero time is none, as in Go's": {`{}`, []string{`{v: "0001-01-01T00:00:00Z"}`}, rules.Earliest("v"), `{}`},
	})
}

// TestQuote checks that clusters are named where their texts differ.
func TestQuote(t *testing.T) {
	step, middle := rules.Quote("v"), strings.Repeat("y", 300)
	runSteps(t, map[string]stepCase{
		"the only cluster is not named":         {`{v: old}`, []string{`{v: x}`}, step, `{v: x}`},
		"the only cluster is cut":               {`{}`, []string{`{v: ` + long + `}`}, step, `{v: ` + long[:1021] + `…}`},
		"the only cluster says nothing":         {`{v: old}`, []string{`{}`}, step, `{}`},
		"all that report say the same":          {`{}`, []string{`{v: x}`, "-", `{v: x}`}, step, `{v: x}`},
		"one that reports says nothing":         {`{}`, []string{`{v: x}`, `{}`, `{v: x}`}, step, `{v: "a: x; c: x"}`},
		"they say different things":             {`{}`, []string{`{v: x}`, `{v: z}`}, step, `{v: "a: x; b: z"}`},
		"three are named":                       {`{}`, []string{`{v: x}`, `{v: z}`, `{v: x}`, `{}`, `{v: x}`, `{v: x}`}, step, `{v: "a: x; b: z; c: x; …"}`},
		"what several say is cut, each":         {`{}`, []string{`{v: ` + middle + `}`, `{v: z}`}, step, `{v: "a: ` + middle[:253] + `…; b: z"}`},
		"all say the same, and too much":        {`{}`, []string{`{v: ` + long + `}`, `{v: ` + long + `}`}, step, `{v: "a: ` + long[:253] + `…; b: ` + long[:253] + `…"}`},
		"none says anything":                    {`{v: old}`, []string{"-", "-"}, step, `{}`},
		"what is no text is nothing that is so": {`{}`, []string{`{v: 7}`, `{v: x}`}, step, `{v: "b: x"}`},
	})
}

// TestAmounts checks that numbers and quantities are summed by name, and that what
// is none counts as zero.
func TestAmounts(t *testing.T) {
	runSteps(t, map[string]stepCase{
		"numbers, name by name":                      {`{v: old}`, []string{`{v: {x: 1, u: {z: 2}}}`, `{v: {x: 3.9, u: {z: 1, w: 4}}}`, "-"}, rules.SumByName("v"), `{v: {x: 4, u: {z: 3, w: 4}}}`},
		"numbers that are none":                      {`{}`, []string{`{v: {x: "1", u: {}, z: -4}}`, `{v: 7}`}, rules.SumByName("v"), `{v: {z: 0}}`},
		"numbers beyond what servers take":           {`{}`, []string{`{v: {x: 2147483647}}`, `{v: {x: 9000000000}}`}, rules.SumByName("v"), `{v: {x: 2147483647}}`},
		"an object beside a number":                  {`{}`, []string{`{v: {x: {u: 1}, z: 1}}`, `{v: {x: 5, z: {u: 1}}}`}, rules.SumByName("v"), `{v: {x: {u: 1}, z: {u: 1}}}`},
		"numbers of no cluster are an object, too":   {`{v: 1}`, nil, rules.SumByName("v"), `{v: {}}`},
		"amounts, as text and as numbers":            {`{}`, []string{`{v: 1500m, w: 1Gi}`, `{v: 2, w: 512Mi}`, `{v: 0.25}`}, rules.Amounts("v", "w"), `{v: 3750m, w: 1536Mi}`},
		"amounts that are none":                      {`{v: 1}`, []string{`{v: much}`, `{v: true}`, `{v: "1e999999999"}`, "-"}, rules.Amounts("v"), `{}`},
		"amounts that cancel each other out are out": {`{v: 1}`, []string{`{v: 1}`, `{v: -1}`}, rules.Amounts("v"), `{}`},
		"the greatest of several":                    {`{v: 9}`, []string{`{v: 1}`, `{v: 3}`, "-"}, rules.Greatest("v"), `{v: 3}`},
		"the greatest, as far as servers take it":    {`{}`, []string{`{v: 9000000000, w: -3}`}, rules.Greatest("v", "w"), `{v: 2147483647, w: 0}`},
		"the first entries of a list":                {`{v: [1, 2, 3], w: [1]}`, nil, rules.Shorten("v", 2), `{v: [1, 2], w: [1]}`},
		"a list that is short enough":                {`{v: [1, 2]}`, nil, rules.Shorten("v", 2), `{v: [1, 2]}`},
		"what is not set is":                         {`{v: 0, w: null}`, nil, rules.Default(map[string]any{"v": "a", "w": "b", "x": int64(1)}), `{v: 0, w: b, x: 1}`},
	})
	if _, err := rules.Amount([]any{1}); err == nil || err.Error() != "[]interface {} is no amount" {
		t.Errorf("error = %v", err)
	}
	if got, err := rules.Amount(math.MaxFloat64); err == nil || !strings.Contains(err.Error(), "17976931348623157") {
		t.Errorf("amount = %v, %v", &got, err)
	}
}

// TestEntries checks that entries of a list with the same keys become one, in the
// order of their keys.
func TestEntries(t *testing.T) {
	const since = `lastTransitionTime: "2026-01-01T00:00:00Z"`
	ready := rules.Conditions(rules.Merge{Type: "Ready", Optional: true})
	runSteps(t, map[string]stepCase{
		"entries by one key": {
			`{l: old}`, []string{`{l: [{name: b, k: 1, more: x}, {name: a, k: 2}, 7]}`, `{l: [{name: b, k: 4}]}`, "-"},
			rules.Entries("l", 9, []string{"name"}, rules.Sum("k")), `{l: [{name: a, k: 2}, {name: b, k: 5}]}`,
		},
		"entries by two keys, of which one may lack": {
			`{}`, []string{`{l: [{name: a, port: 1}, {name: a}]}`, `{l: [{name: a, port: 1, k: 3}, {name: a, port: 2}]}`},
			rules.Entries("l", 9, []string{"name", "port"}, rules.Sum("k")),
			`{l: [{name: a, port: 1, k: 3}, {name: a, port: 2, k: 0}, {name: a, k: 0}]}`,
		},
		"no more than so many": {
			`{}`, []string{`{l: [{name: c}, {name: a}, {name: b}]}`}, rules.Entries("l", 2, []string{"name"}), `{l: [{name: a}, {name: b}]}`,
		},
		"none that any has any more": {`{l: [{name: a}]}`, []string{`{}`, "-"}, rules.Entries("l", 9, []string{"name"}), `{l: []}`},
		"conditions of an entry keep their time": {
			`{l: [{name: a, conditions: [{type: Ready, status: "True", ` + since + `}]}]}`,
			[]string{`{l: [{name: a, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T00:00:00Z"}]}]}`, `{l: []}`},
			rules.Entries("l", 9, []string{"name"}, rules.Conditions(rules.Merge{Type: "Ready", Wanted: "False"})),
			`{l: [{name: a, conditions: [{type: Ready, status: "True", reason: Reported, message: "a: True", ` + since + `}]}]}`,
		},
		"an entry that a cluster lacks is not reported there": {
			`{}`, []string{`{l: [{name: a, conditions: [{type: Ready, status: "True", ` + since + `}]}]}`, `{l: []}`},
			rules.Entries("l", 9, []string{"name"}, ready),
			`{l: [{name: a, conditions: [{type: Ready, status: Unknown, reason: NotReported, message: "b: NotReported", lastTransitionTime: "2025-01-01T00:00:00Z"}]}]}`,
		},
		"an entry is about the spec that the status around it is about": {
			`{}`, []string{`{generation: 1, resourceTemplateGeneration: 2, l: [{name: a, observedGeneration: 1}, {name: b}]}`},
			rules.Entries("l", 9, []string{"name"}, rules.Observe), `{l: [{name: a, observedGeneration: 2}, {name: b}]}`,
		},
	})
}

// TestNames checks that fifty clusters are listed, and the rest counted.
func TestNames(t *testing.T) {
	many := strings.Split(strings.Repeat("m ", 52), " ")[:52]
	got := []string{rules.Names(nil), rules.Names([]string{"a", "b"}), rules.Names(many[:50]), rules.Names(many)}
	fifty := strings.Repeat("m,", 49) + "m"
	if diff := cmp.Diff([]string{"", "a,b", fifty, fifty + " and 2 more"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
