package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// TestEveryCondition checks that conditions of all types are merged, with those
// fields that the kind's conditions have, and that those of an only cluster are
// taken as they are.
func TestEveryCondition(t *testing.T) {
	const early, late = `lastTransitionTime: "2026-01-01T00:00:00Z"`, `lastTransitionTime: "2026-02-01T00:00:00Z"`
	ready := func(rest string) string { return `{conditions: [{type: Ready, ` + rest + `}]}` }
	step := rules.EveryCondition("Bad")
	runSteps(t, map[string]stepCase{
		"the only cluster is quoted": {
			`{}`, []string{ready(`status: "False", reason: Slow, message: it takes long, ` + early)}, step,
			ready(`status: "False", reason: Slow, message: it takes long, ` + early),
		},
		"the only cluster is quoted when all is well, too": {
			`{}`, []string{ready(`status: "True", reason: Fine, message: all is well, ` + early)}, step,
			ready(`status: "True", reason: Fine, message: all is well, ` + early),
		},
		"several are named where something is not well": {
			`{}`, []string{ready(`status: "True", reason: Fine, message: well, ` + early), ready(`status: "False", reason: Slow, message: it takes long, ` + late)}, step,
			ready(`status: "False", reason: Slow, message: "b: it takes long", ` + late),
		},
		"what all say when all is well": {
			`{}`, []string{ready(`status: "True", message: well, ` + early), ready(`status: "True", message: well, ` + late)}, step,
			ready(`status: "True", message: well, ` + late),
		},
		"not what only one says": {
			`{}`, []string{ready(`status: "True", message: well, ` + early), ready(`status: "True", message: fine, ` + late)}, step,
			ready(`status: "True", message: "", ` + late),
		},
		"nor what is too long": {
			`{}`, []string{ready(`status: "True", message: ` + long), ready(`status: "True", message: ` + long)}, step,
			ready(`status: "True", message: ""`),
		},
		"bad news anywhere is bad news, what else is true is true everywhere": {
			`{}`, []string{
				`{conditions: [{type: Stalled, status: "True"}, {type: Bad, status: "True"}, {type: Good, status: "True"}]}`,
				`{conditions: [{type: Stalled, status: "False"}, {type: Good, status: "False"}]}`,
			}, step,
			`{conditions: [{type: Bad, status: "True", message: "a: True"}, {type: Good, status: "False", message: "b: False"}, {type: Stalled, status: "True", message: "a: True"}]}`,
		},
		"a cluster that lacks it does not know": {
			`{}`, []string{ready(`status: "True", reason: Fine`), "-"}, step,
			ready(`status: Unknown, reason: NotReported, message: "b: NotReported"`),
		},
		"times of updates and probes are those of the change": {
			`{}`, []string{ready(`status: "True", lastUpdateTime: now, lastProbeTime: now, ` + early)}, step,
			ready(`status: "True", lastUpdateTime: "2026-01-01T00:00:00Z", lastProbeTime: "2026-01-01T00:00:00Z", ` + early),
		},
		"a time that cannot be read is when the template was made": {
			`{}`, []string{ready(`status: "True", lastTransitionTime: now`)}, step,
			ready(`status: "True", lastTransitionTime: "2025-01-01T00:00:00Z"`),
		},
		"the time of a status that stays, stays": {
			ready(`status: "True", ` + early), []string{ready(`status: "True", ` + late)}, step, ready(`status: "True", ` + early),
		},
		"none where none were": {`{v: 1}`, []string{`{}`, `{conditions: [7, {status: "True"}]}`}, step, `{v: 1}`},
	})
}

// TestEveryConditionObserved checks that conditions get the template's latest
// generation once they are about it in every cluster.
func TestEveryConditionObserved(t *testing.T) {
	const early = `lastTransitionTime: "2026-01-01T00:00:00Z"`
	ready := func(rest string) string { return `{conditions: [{type: Ready, ` + rest + `}]}` }
	tracked := func(template, observed string) string {
		return `{generation: 5, resourceTemplateGeneration: ` + template + `, conditions: [{type: Ready, status: "True", observedGeneration: ` + observed + `, ` + early + `}]}`
	}
	step := rules.EveryCondition("Bad")
	runSteps(t, map[string]stepCase{
		"seen once it is about the latest spec everywhere": {
			`{}`, []string{tracked("2", "5"), tracked("3", "6")}, step, ready(`status: "True", observedGeneration: 2, ` + early),
		},
		"what was seen before stays while a cluster is not that far": {
			ready(`status: "True", observedGeneration: 1`), []string{tracked("2", "5"), tracked("2", "4")}, step,
			ready(`status: "True", observedGeneration: 1, ` + early),
		},
		"or has not got the latest spec": {
			`{}`, []string{tracked("2", "5"), tracked("1", "5")}, step, ready(`status: "True", ` + early),
		},
		"bad news is not missing where it is not": {
			`{}`, []string{
				`{generation: 1, resourceTemplateGeneration: 2, conditions: [{type: Bad, status: "True", observedGeneration: 1}]}`,
				`{generation: 1, resourceTemplateGeneration: 2}`,
			}, step, `{conditions: [{type: Bad, status: "True", message: "a: True", observedGeneration: 2}]}`,
		},
	})
}

// TestEveryConditionIsBounded checks that a template gets a bounded number of
// types of conditions, the first by name, and no type of unreasonable length.
func TestEveryConditionIsBounded(t *testing.T) {
	given := []string{`{type: ` + long + `, status: "True"}`}
	want := []string{}
	for i := range 40 {
		c := fmt.Sprintf(`{type: T%02d, status: "True"}`, i)
		given = append(given, c)
		if i < rules.MostConditions {
			want = append(want, c)
		}
	}
	runSteps(t, map[string]stepCase{"many": {
		`{}`, []string{`{conditions: [` + strings.Join(given, ", ") + `]}`}, rules.EveryCondition(), `{conditions: [` + strings.Join(want, ", ") + `]}`,
	}})
}

// TestConditionsGo checks that the template's conditions are emptied where no
// cluster reports any, and that nothing is written where there are none.
func TestConditionsGo(t *testing.T) {
	status := object(t, `{conditions: [{type: Ready, status: "True"}], v: 1}`).Object
	r := reportsOf(t, `{}`, []string{`{}`, "-"})
	rules.EveryCondition()(status, r)
	if diff := cmp.Diff(object(t, `{conditions: [], v: 1}`).Object, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	status = map[string]any{"v": int64(1)}
	rules.EveryCondition()(status, r)
	if diff := cmp.Diff(object(t, `{v: 1}`).Object, status); diff != "" {
		t.Errorf("status of a template without any (-want +got):\n%s", diff)
	}
}

// TestUndated checks that conditions without a time get the epoch where the schema
// requires one.
func TestUndated(t *testing.T) {
	status := map[string]any{}
	rules.EveryCondition()(status, reportsOf(t, `{}`, []string{`{conditions: [{type: Ready, status: "True", lastTransitionTime: now}]}`}))
	want := object(t, `{conditions: [{type: Ready, status: "True", lastTransitionTime: "1970-01-01T00:00:00Z"}]}`).Object
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestPlain checks that a condition is reduced to the fields that API servers
// accept.
func TestPlain(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"all there is": {
			`{type: Ready, status: "True", reason: Fine, message: well, lastTransitionTime: "2026-01-01T02:00:00+02:00", lastUpdateTime: "2026-01-01T03:00:00.5Z", observedGeneration: 3, severity: Error}`,
			`{type: Ready, status: "True", reason: Fine, message: well, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T03:00:00Z"}`,
		},
		"what is of an unexpected shape": {
			`{type: Ready, status: yes, reason: "no word", message: [x], lastTransitionTime: now, lastUpdateTime: 7}`, `{type: Ready, status: Unknown}`,
		},
		"a message is cut between runes": {
			`{type: Ready, status: "False", message: x` + strings.Repeat("é", 600) + `}`, `{type: Ready, status: "False", message: x` + strings.Repeat("é", 510) + `…}`,
		},
		"a message that is too long": {`{type: Ready, status: "False", message: ` + long + `}`, `{type: Ready, status: "False", message: ` + long[:1021] + `…}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(object(t, tc.want).Object, rules.Plain(object(t, tc.in).Object)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
