package build_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/build"
)

// TestWhatSecretsComeOutAsIsTold checks that the texts in which values of Secrets
// appear are reported, and those of other values are not.
func TestWhatSecretsComeOutAsIsTold(t *testing.T) {
	values := map[string]string{"TOKEN": "canarytok3n", "AB": "q7", "HEX": "0x12D687", "FLOW": "{k: canary, m: [1234.5]}", "OPEN": "public", "MULTI": "cnA\nryB"}
	manifest := func(data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata:\n  x: " + data + "\n"
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"as it is":                       {manifest("a ${TOKEN} b"), []string{"canarytok3n"}},
		"in capitals":                    {manifest("a ${TOKEN^^} b"), []string{"CANARYTOK3N"}},
		"in part":                        {manifest("a ${TOKEN:1} b"), []string{"anarytok3n"}},
		"in a short part, with its line": {manifest("a ${TOKEN:0:2} b"), []string{"a ca b", "ca"}},
		"in another one's default":       {manifest("${NONE:=a-${TOKEN}}"), []string{"a-canarytok3n"}},
		"twice":                          {manifest("${TOKEN} ${TOKEN,,}${OPEN}"), []string{"canarytok3n"}},
		"with lines joined":              {manifest("${MULTI}"), []string{"cnAryB"}},
		"a short one, in its line":       {manifest("|\n    user ${AB}\n    all ${OPEN}"), []string{"q7", "user q7"}},
		"a number":                       {manifest("${HEX}"), []string{"0x12D687", "1234567"}},
		"fields":                         {manifest("${FLOW}"), []string{"1234.5", "canary", "k", "m", "{k: canary, m: [1234.5]}"}},
		"in a key":                       {manifest("y\n  k-${TOKEN}: v"), []string{"canarytok3n"}},
		"no secret":                      {manifest("${OPEN}"), nil},
		"as the text of a variable":      {manifest("$${TOKEN} ${OPEN}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			reported := map[string]bool{}
			_, err := build.New(build.Limits{}).Build(t.Context(), build.Input{
				Files: map[string][]byte{"a.yaml": []byte(tc.text)}, Reveal: func(text string) { reported[text] = true },
				Spec: build.Spec{Variables: values, Secrets: []string{"TOKEN", "AB", "HEX", "FLOW", "MULTI"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(reported))); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatHoldsSecretsIsMarked checks that exactly the objects with values of
// Secrets are marked.
func TestWhatHoldsSecretsIsMarked(t *testing.T) {
	named := func(name, value string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"" + name + "\"}\ndata: {x: \"" + value + "\"}\n"
	}
	objects, err := build.New(build.Limits{}).Build(t.Context(), build.Input{
		Files: map[string][]byte{"a.yaml": []byte(named("a", "${OPEN}") + named("b", "${TOKEN:1}") + named("c-${TOKEN}", "x"))}, Reveal: func(string) {},
		Spec: build.Spec{
			Variables: map[string]string{"TOKEN": "canary", "OPEN": "public"}, Secrets: []string{"TOKEN"},
			SecretAnnotation: build.SecretAnnotation{Key: "holds", InName: "name", InFields: "fields"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range objects {
		got[o.GetName()] = o.GetAnnotations()["holds"]
	}
	if diff := cmp.Diff(map[string]string{"a": "", "b": "fields", "c-canary": "name"}, got); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}
