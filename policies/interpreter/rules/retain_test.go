package rules_test

import (
	"strings"
	"testing"

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
