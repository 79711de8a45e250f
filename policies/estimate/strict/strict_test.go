package strict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/estimate/strict"
)

type answer struct {
	Replicas int32             `json:"replicas"`
	Reasons  map[string]string `json:"reasons,omitempty"`
}

// TestRead takes what says one thing, and refuses what two readers could take for two.
func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		most int // zero: long enough
		want answer
		err  string // a part of it
	}{
		"all fields":                  {text: `{"replicas":3,"reasons":{"a":"b"}}`, want: answer{3, map[string]string{"a": "b"}}},
		"no fields":                   {text: `{}`},
		"space around it":             {text: " {\"replicas\":3}\n", want: answer{Replicas: 3}},
		"as long as it may be":        {text: `{"replicas":3}`, most: 14, want: answer{Replicas: 3}},
		"a byte longer":               {text: `{"replicas":33}`, most: 14, err: "it has 15 bytes, and may have 14"},
		"nothing":                     {text: "", err: "unexpected end"},
		"something else after it":     {text: `{"replicas":3}{}`, err: "after top-level value"},
		"a field that nobody knows":   {text: `{"replicas":3,"more":1}`, err: `unknown field "more"`},
		"a field that stands twice":   {text: `{"replicas":3,"replicas":4}`, err: `duplicate field "replicas"`},
		"a field in other letters":    {text: `{"Replicas":3}`, err: `unknown field "Replicas"`},
		"a number that does not fit":  {text: `{"replicas":3000000000}`, err: "cannot unmarshal number 3000000000"},
		"a text instead of a number":  {text: `{"replicas":"3"}`, err: "cannot unmarshal string"},
		"a list instead of an object": {text: `[]`, err: "cannot unmarshal array"},
	} {
		t.Run(name, func(t *testing.T) {
			most := tc.most
			if most == 0 {
				most = 100
			}
			var got answer
			err := strict.Read([]byte(tc.text), most, &got)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); err == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
