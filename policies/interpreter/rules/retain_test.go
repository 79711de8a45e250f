package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

func TestScaled(t *testing.T) {
	const replicas = `fieldsV1: {"f:spec": {"f:replicas": {}}}`
	cases := map[string]struct {
		managers string
		want     bool
	}{
		"an autoscaler's":                      {`[{manager: kube-controller-manager, operation: Update, subresource: scale, ` + replicas + `}]`, true},
		"another program's":                    {`[{manager: octopus, operation: Update, subresource: scale, ` + replicas + `}]`, true},
		"a person's":                           {`[{manager: kubectl, operation: Update, subresource: scale, ` + replicas + `}]`, false},
		"a person's, on another system":        {`[{manager: kubectl.exe, operation: Update, subresource: scale, ` + replicas + `}]`, false},
		"a person's, by a command":             {`[{manager: kubectl-scale, operation: Update, subresource: scale, ` + replicas + `}]`, false},
		"a person's beside an autoscaler's":    {`[{manager: oc, subresource: scale, ` + replicas + `}, {manager: x, subresource: scale, ` + replicas + `}]`, true},
		"ours, applied as a part of all":       {`[{manager: flotilla, operation: Apply, ` + replicas + `}]`, false},
		"other fields set through it":          {`[{manager: x, subresource: scale, fieldsV1: {"f:status": {}}}]`, false},
		"nobody's, after we took it over":      {`[{manager: x, subresource: scale, fieldsV1: {"f:spec": {}}}]`, false},
		"managed fields of an unexpected kind": {`[1, {manager: 2, subresource: scale, fieldsV1: [1]}, {subresource: scale, fieldsV1: {"f:spec": 3}}]`, false},
		"none":                                 {`null`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rules.Scaled(object(t, `{metadata: {managedFields: `+tc.managers+`}}`)); got != tc.want {
				t.Errorf("scaled = %v", got)
			}
		})
	}
}

func TestApplied(t *testing.T) {
	const entry = `{manager: flotilla, operation: Apply, fieldsV1: {"f:spec": {"f:paused": {}}}}`
	cases := map[string]struct {
		entry string
		want  bool
	}{
		"a field of ours":        {entry, true},
		"a field of another's":   {strings.Replace(entry, "flotilla", "helm", 1), false},
		"a field that we update": {strings.Replace(entry, "Apply", "Update", 1), false},
		"another field of ours":  {strings.Replace(entry, "paused", "replicas", 1), false},
		"through a subresource":  {strings.Replace(entry, "manager", "subresource: status, manager", 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rules.Applied(object(t, `{metadata: {managedFields: [`+tc.entry+`]}}`), "f:spec", "f:paused"); got != tc.want {
				t.Errorf("applied = %v", got)
			}
		})
	}
}

// TestDropChanged checks that a field is left out where the member has another
// value, and only there, and that neither object is changed.
func TestDropChanged(t *testing.T) {
	const labelled = `metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, `
	drop := rules.DropChanged("spec", "replicas")
	cases := map[string]struct {
		rule                    func(desired, observed kinds.Object) (kinds.Object, error)
		desired, observed, want string
	}{
		"another value":             {drop, `{spec: {replicas: 1, a: b}}`, `{spec: {replicas: 2}}`, `{spec: {a: b}}`},
		"another object":            {drop, `{spec: {replicas: {a: [1]}}}`, `{spec: {replicas: {a: [2]}}}`, `{spec: {}}`},
		"an equal value":            {drop, `{spec: {replicas: {a: [1]}}}`, `{spec: {replicas: {a: [1]}}}`, `{spec: {replicas: {a: [1]}}}`},
		"a value that is only ours": {drop, `{spec: {replicas: 1}}`, `{spec: {}}`, `{spec: {replicas: 1}}`},
		"a value that is not ours":  {drop, `{spec: {a: b}}`, `{spec: {replicas: 2}}`, `{spec: {a: b}}`},
		"replicas, if asked for":    {rules.RetainReplicas, `{` + labelled + `spec: {replicas: 1}}`, `{spec: {replicas: 2}}`, `{` + labelled + `spec: {}}`},
		"replicas, if not":          {rules.RetainReplicas, `{spec: {replicas: 1}}`, `{spec: {replicas: 2}}`, `{spec: {replicas: 1}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired, observed := object(t, tc.desired), object(t, tc.observed)
			out, err := tc.rule(desired, observed)
			if err != nil {
				t.Fatal(err)
			}
			want := []any{object(t, tc.want).Object, object(t, tc.desired).Object, object(t, tc.observed).Object}
			if diff := cmp.Diff(want, []any{out.Object, desired.Object, observed.Object}); diff != "" {
				t.Errorf("applied, and what was given (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRetainLabel checks that the template's label can ask to keep the member's
// replicas, or to apply its own.
func TestRetainLabel(t *testing.T) {
	type answers struct{ Retains, Forces bool }
	cases := map[string]struct {
		labels string
		want   answers
	}{
		"keep them":        {`{resourcetemplate.karmada.io/retain-replicas: "true"}`, answers{Retains: true}},
		"do not keep them": {`{resourcetemplate.karmada.io/retain-replicas: "false"}`, answers{Forces: true}},
		"what is neither":  {`{resourcetemplate.karmada.io/retain-replicas: "True"}`, answers{}},
		"nothing":          {`{}`, answers{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := object(t, `{metadata: {labels: `+tc.labels+`}}`)
			got := answers{rules.RetainsReplicas(template), rules.ForcesReplicas(template)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}
