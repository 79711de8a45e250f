package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestCompare proves that the comparison sees what it is there to see.
func TestCompare(t *testing.T) {
	type outcome struct{ Faults, Additions []string }
	cases := map[string]struct {
		want, got string
		outcome   outcome
	}{
		"the same":                        {`{type: string}`, `{type: string}`, outcome{}},
		"another description":             {`{type: string}`, `{type: string, description: x}`, outcome{}},
		"another type":                    {`{type: string}`, `{type: integer}`, outcome{Faults: []string{".type: want string, got integer"}}},
		"a missing default":               {`{default: 0}`, `{}`, outcome{Faults: []string{".default: missing"}}},
		"a default where none is":         {`{}`, `{default: 0}`, outcome{Faults: []string{".default: stricter than the reference: 0"}}},
		"another limit":                   {`{maxLength: 32}`, `{maxLength: 33}`, outcome{Faults: []string{".maxLength: want 32, got 33"}}},
		"a field that is missing":         {`{properties: {a: {}}}`, `{properties: {}}`, outcome{Faults: []string{".properties.a: missing"}}},
		"a field besides":                 {`{properties: {a: {}}}`, `{properties: {a: {}, b: {type: string}}}`, outcome{Additions: []string{".properties.b"}}},
		"a field called as a keyword":     {`{properties: {}}`, `{properties: {type: {type: string}}}`, outcome{Additions: []string{".properties.type"}}},
		"a field called description":      {`{properties: {}}`, `{properties: {description: {type: string}}}`, outcome{Additions: []string{".properties.description"}}},
		"a field that is required":        {`{required: [a]}`, `{required: [a, b]}`, outcome{Faults: []string{".required: b is required, but not by the reference"}}},
		"a field that is not required":    {`{required: [a, b]}`, `{required: [b]}`, outcome{Faults: []string{".required: a is missing"}}},
		"required in another order":       {`{required: [a, b]}`, `{required: [b, a]}`, outcome{}},
		"a value besides":                 {`{enum: [a]}`, `{enum: [a, b]}`, outcome{Additions: []string{".enum b"}}},
		"a value that is missing":         {`{enum: [a, b]}`, `{enum: [a]}`, outcome{Faults: []string{".enum: b is missing"}}},
		"a rule that is not there":        {`{}`, `{x-kubernetes-validations: [{rule: "true"}]}`, outcome{Faults: []string{".x-kubernetes-validations: stricter than the reference: [map[rule:true]]"}}},
		"a rule that differs":             {`{x-kubernetes-validations: [{rule: a}]}`, `{x-kubernetes-validations: [{rule: b}]}`, outcome{Faults: []string{".x-kubernetes-validations[0].rule: want a, got b"}}},
		"columns in another order":        {`{columns: [{name: A}, {name: B}]}`, `{columns: [{name: B}, {name: A}]}`, outcome{Faults: []string{".columns[0].name: want A, got B", ".columns[1].name: want B, got A"}}},
		"a column besides":                {`{columns: [{name: A}]}`, `{columns: [{name: A}, {name: B}]}`, outcome{Faults: []string{".columns: want 1 items, got 2"}}},
		"a sub-resource besides":          {`{subresources: {}}`, `{subresources: {status: {}}}`, outcome{Additions: []string{".subresources.status"}}},
		"a fault deep inside of a schema": {`{properties: {a: {items: {format: int32}}}}`, `{properties: {a: {items: {format: int64}}}}`, outcome{Faults: []string{".properties.a.items.format: want int32, got int64"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var want, got any
			for text, into := range map[string]*any{c.want: &want, c.got: &got} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if c.want == c.got {
				got = want
			}
			faults, additions := compare(want, got)
			if diff := cmp.Diff(c.outcome, outcome{faults, additions}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
