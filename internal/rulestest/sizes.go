package rulestest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Size is a row about what an object asks for: "2 of cpu 1", with "class high" and
// more behind; its parts, if it has several; and what changes where it is to ask for
// another number of replicas.
type Size struct {
	Kind, Object string
	Replicas     string
	Parts        []string
	Revise       int32
	Revised      []string
}

// asked writes down what a replica needs.
func asked(t testing.TB, req any) string {
	t.Helper()
	data, err := yaml.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(data))
	if text == "null" {
		return "nothing"
	}
	return strings.Join(strings.Fields(text), " ")
}

// CheckSizes asks the rules of a table about the object of each row.
func CheckSizes(t *testing.T, table kinds.Table, rows map[string]Size) {
	t.Helper()
	know := interpreter.New(table)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			obj := Made(t, row.Kind, row.Object)
			got := Size{Kind: row.Kind, Object: row.Object, Revise: row.Revise}
			if n, req, known, err := know.Replicas(obj); err != nil {
				t.Fatal(err)
			} else if known && row.Replicas != "" {
				got.Replicas = fmt.Sprintf("%d of %s", n, asked(t, req))
			}
			parts, known, err := know.Components(obj)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range parts {
				text := fmt.Sprintf("%s %d", p.Name, p.Replicas)
				if p.ReplicaRequirements != nil {
					text += " of " + asked(t, p.ReplicaRequirements)
				}
				got.Parts = append(got.Parts, text)
			}
			if known && len(parts) == 0 {
				got.Parts = []string{}
			}
			if row.Revised != nil {
				revised, known, err := know.Revise(obj, row.Revise)
				if err != nil || !known {
					t.Fatalf("revised = %t, %v", known, err)
				}
				got.Revised = append([]string{}, Changes("", obj.Object, revised.Object)...)
			}
			if diff := cmp.Diff(row, got); diff != "" {
				t.Errorf("size (-want +got):\n%s", diff)
			}
		})
	}
}
