package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestConditions(t *testing.T) {
	ready := rules.Merge{Type: "Ready", Done: "Done", Gravest: "Broken"}
	failing := rules.Merge{Type: "Failing", Wanted: corev1.ConditionFalse}
	const early, late = `lastTransitionTime: "2026-01-01T00:00:00Z"`, `lastTransitionTime: "2026-02-01T00:00:00Z"`
	cases := map[string]struct {
		merge rules.Merge
		// current are the template's conditions.
		current string
		// reported are the conditions of the clusters a, b, …; "-" where a cluster
		// reports no status at all.
		reported []string
		want     string
	}{
		"true once it is everywhere, since it was in the last": {
			ready, `[]`, []string{`[{type: Ready, status: "True", reason: Done, message: hidden, ` + late + `}]`, `[{type: Ready, status: "True", reason: Done, ` + early + `}]`},
			`[{type: Ready, status: "True", reason: Done, message: "", ` + late + `}]`,
		},
		"a reason that is not the last one goes before it": {
			ready, `[]`, []string{`[{type: Ready, status: "True", reason: Done}]`, `[{type: Ready, status: "True", reason: Almost}]`},
			`[{type: Ready, status: "True", reason: Almost, message: "", lastTransitionTime: "2025-01-01T00:00:00Z"}]`,
		},
		"false where it is anywhere, with the gravest reason, and who says so": {
			ready, `[]`, []string{`[{type: Ready, status: "False", reason: Slow, ` + early + `}]`, `[{type: Ready, status: "False", reason: Broken, message: no luck, ` + late + `}]`, `[{type: Ready, status: Unknown}]`},
			`[{type: Ready, status: "False", reason: Broken, message: "a: Slow; b: no luck", ` + late + `}]`,
		},
		"unknown where a cluster does not have it": {
			ready, `[]`, []string{`[{type: Ready, status: "True", ` + early + `}]`, `[]`, `-`},
			`[{type: Ready, status: Unknown, reason: NotReported, message: "b: NotReported; c: NotReported", lastTransitionTime: "2025-01-01T00:00:00Z"}]`,
		},
		"an optional one may be missing in a cluster that reports": {
			rules.Merge{Type: "Ready", Optional: true}, `[]`, []string{`[{type: Ready, status: "True", ` + early + `}]`, `[]`},
			`[{type: Ready, status: "True", reason: Reported, message: "", ` + early + `}]`,
		},
		"not in one that does not": {
			rules.Merge{Type: "Ready", Optional: true}, `[]`, []string{`[{type: Ready, status: "True", ` + early + `}]`, `-`},
			`[{type: Ready, status: Unknown, reason: NotReported, message: "b: NotReported", lastTransitionTime: "2025-01-01T00:00:00Z"}]`,
		},
		"the time of a status that stays, stays": {
			ready, `[{type: Ready, status: "True", reason: Done, ` + early + `}]`, []string{`[{type: Ready, status: "True", reason: Done, ` + late + `}]`},
			`[{type: Ready, status: "True", reason: Done, message: "", ` + early + `}]`,
		},
		"what no cluster has any more goes, what others wrote stays": {
			ready, `[{type: Other, status: odd}, {type: Ready, status: "True"}, 7]`, []string{`[]`, `-`}, `[{type: Other, status: odd}, 7]`,
		},
		"bad news is missing in most clusters": {
			failing, `[]`, []string{`[]`, `-`, `[{type: Failing, status: "True", reason: Quota, message: too much, ` + early + `}]`},
			`[{type: Failing, status: "True", reason: Quota, message: "c: too much", ` + early + `}]`,
		},
		"it is false once it is nowhere": {
			failing, `[]`, []string{`[{type: Failing, status: "False", reason: Fine, ` + early + `}]`, `[]`},
			`[{type: Failing, status: "False", reason: Fine, message: "", ` + early + `}]`,
		},
		"a quiet one has no reason while all is well": {
			rules.Merge{Type: "Ready", Quiet: true}, `[]`, []string{`[{type: Ready, status: "True", reason: Busy, ` + early + `}]`},
			`[{type: Ready, status: "True", reason: Reported, message: "", ` + early + `}]`,
		},
		"a message names three clusters": {
			ready, `[]`, []string{`[{type: Ready, status: "False"}]`, `[{type: Ready, status: "False"}]`, `[{type: Ready, status: "False"}]`, `[{type: Ready, status: "False"}]`, `[{type: Ready, status: "False"}]`},
			`[{type: Ready, status: "False", reason: Reported, message: "a: False; b: False; c: False; and 2 more", lastTransitionTime: "2025-01-01T00:00:00Z"}]`,
		},
		"what servers would refuse is left out": {
			ready, `[]`, []string{`[7, {type: Ready, status: maybe, reason: "not one word", message: {a: b}, lastTransitionTime: yesterday}]`},
			`[{type: Ready, status: Unknown, reason: Reported, message: "a: Unknown", lastTransitionTime: "2025-01-01T00:00:00Z"}]`,
		},
		"times are compared as such": {
			ready, `[]`, []string{`[{type: Ready, status: "True", lastTransitionTime: "2026-01-01T03:00:00.5+02:00"}]`, `[{type: Ready, status: "True", lastTransitionTime: "2026-01-01T02:00:00Z"}]`},
			`[{type: Ready, status: "True", reason: Reported, message: "", lastTransitionTime: "2026-01-01T02:00:00Z"}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := object(t, `{metadata: {creationTimestamp: "2025-01-01T00:00:00Z"}, status: {conditions: `+tc.current+`}}`)
			r := rules.Reports{Template: template}
			for i, text := range tc.reported {
				part := rules.Part{Cluster: string(rune('a' + i))}
				if text != "-" {
					part.Status = object(t, `{conditions: `+text+`}`).Object
				}
				r.Parts = append(r.Parts, part)
			}
			status := rules.StatusOf(template)
			rules.Conditions(tc.merge)(status, r)
			want := object(t, `{conditions: `+tc.want+`}`).Object
			if diff := cmp.Diff(want, status); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			rules.Conditions(tc.merge)(status, rules.Reports{Template: &unstructured.Unstructured{Object: map[string]any{
				"metadata": template.Object["metadata"], "status": status,
			}}, Parts: r.Parts})
			if diff := cmp.Diff(want, status); diff != "" {
				t.Errorf("merging twice is not merging once (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestWithConditions(t *testing.T) {
	observed := object(t, `{status: {replicas: 1, conditions: [
  {type: Ready, status: "True", reason: Fine, message: ticks, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-02T00:00:00Z", observedGeneration: 4},
  {type: Failing, status: "True", reason: `+strings.Repeat("R", 500)+`, message: `+strings.Repeat("é", 500)+`},
  {type: Other, status: "True"}]}}`)
	got, err := rules.WithConditions(rules.Reflect("replicas"), rules.Merge{Type: "Failing", Wanted: corev1.ConditionFalse}, rules.Merge{Type: "Ready"}, rules.Merge{Type: "Absent"})(observed)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"replicas": int64(1), "conditions": []any{
		map[string]any{"type": "Failing", "status": "True", "reason": strings.Repeat("R", 128), "message": strings.Repeat("é", 126) + "…"},
		map[string]any{"type": "Ready", "status": "True", "reason": "Fine", "lastTransitionTime": "2026-01-01T00:00:00Z"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}
