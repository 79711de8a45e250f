package override_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
)

func raw(s string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(s)} }

// TestLimits: what would blow up is refused before it does.
func TestLimits(t *testing.T) {
	big := strings.Repeat("x", override.MaxBytes+1)
	plaintext := func(n int) policyv1alpha1.Overriders {
		many := make([]policyv1alpha1.PlaintextOverrider, n)
		for i := range many {
			many[i] = policyv1alpha1.PlaintextOverrider{Path: "/spec/a", Operator: "add", Value: raw("1")}
		}
		return policyv1alpha1.Overriders{Plaintext: many}
	}
	field := func(yaml bool, steps int) policyv1alpha1.Overriders {
		o := policyv1alpha1.FieldOverrider{FieldPath: "/data/a"}
		for range steps {
			if yaml {
				o.YAML = append(o.YAML, policyv1alpha1.YAMLPatchOperation{SubPath: "/z", Operator: "add", Value: raw("2")})
			} else {
				o.JSON = append(o.JSON, policyv1alpha1.JSONPatchOperation{SubPath: "/z", Operator: "add", Value: raw("2")})
			}
		}
		return policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{o}}
	}
	again := policyv1alpha1.Overriders{}
	for range 100 {
		again.FieldOverrider = append(again.FieldOverrider, field(false, 1).FieldOverrider...)
	}
	twins := deployment()
	containers := make([]any, 100)
	for i := range containers {
		containers[i] = map[string]any{"name": "app"}
	}
	_ = unstructured.SetNestedSlice(twins.Object, containers, "spec", "template", "spec", "containers")
	cases := map[string]struct {
		obj  *unstructured.Unstructured
		with policyv1alpha1.Overriders
		want error
	}{
		"a patch of a million steps":                {deployment(), plaintext(1_000_000), override.ErrTooMany},
		"a patch of a million steps in a string":    {configMap("a", "{}"), field(false, 1_000_000), override.ErrTooMany},
		"a YAML string that is too large":           {configMap("a", big), field(true, 1), override.ErrTooLarge},
		"a JSON string that is too large":           {configMap("a", `"`+big+`"`), field(false, 1), override.ErrTooLarge},
		"a result that is too large":                {deployment(), policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/a", Operator: "add", Value: raw(`"` + big + `"`)}}}, override.ErrTooLarge},
		"aliases that multiply by nine, ten times":  {configMap("a", nines()), field(true, 1), override.ErrTooLarge},
		"aliases of one long string":                {configMap("a", "a: &a "+strings.Repeat("x", 1<<20)+"\nb: ["+strings.Repeat("*a,", 1000)+"]\n"), field(true, 1), override.ErrTooLarge},
		"merges that multiply":                      {configMap("a", merges()), field(true, 1), override.ErrTooLarge},
		"one large string, patched again and again": {configMap("a", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), again, override.ErrTooMuch},
		"one large argument for many containers":    {twins, policyv1alpha1.Overriders{ArgsOverrider: []policyv1alpha1.CommandArgsOverrider{{ContainerName: "app", Operator: "add", Value: []string{strings.Repeat("x", 1<<20)}}}}, override.ErrTooMuch},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := apply(tc.obj, east(), []policyv1alpha1.Override{policyOf(tc.with)})
			var typed *override.Error
			if !errors.Is(err, tc.want) || !errors.As(err, &typed) {
				t.Errorf("error = %.200v, want %v", err, tc.want)
			}
		})
	}
}

func nines() string {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	return bomb
}

func merges() string {
	bomb := "a: &a {v: " + strings.Repeat("x", 1000) + "}\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += fmt.Sprintf("%c: &%c {x: {<<: *%c}, y: {<<: *%c}, z: {<<: *%c}, u: {<<: *%c}}\n", c, c, c-1, c-1, c-1, c-1)
	}
	return bomb
}

// TestForeignBytes: values that no user writes by hand.
func TestForeignBytes(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	patch := func(path, value string) policyv1alpha1.Overriders {
		return policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: "add", Value: raw(value)}}}
	}
	inside := func(language, path, value string) policyv1alpha1.Overriders {
		o := policyv1alpha1.FieldOverrider{FieldPath: "/data/a"}
		if language == "yaml" {
			o.YAML = []policyv1alpha1.YAMLPatchOperation{{SubPath: path, Operator: "add", Value: raw(value)}}
		} else {
			o.JSON = []policyv1alpha1.JSONPatchOperation{{SubPath: path, Operator: "add", Value: raw(value)}}
		}
		return policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{o}}
	}
	cases := map[string]struct {
		obj  *unstructured.Unstructured
		with policyv1alpha1.Overriders
		// want is "" where it is applied.
		want string
	}{
		"a number beyond all numbers":        {deployment(), patch("/spec/n", "1e400"), "plaintext: read the result: "},
		"a whole number beyond 64 bits":      {deployment(), patch("/spec/n", "123456789012345678901234567890"), ""},
		"a value that is no JSON":            {deployment(), patch("/spec/n", "{"), "plaintext[0] at /spec/n: the new value is no JSON"},
		"a value with half a character":      {deployment(), patch("/spec/n", "\"\xff\xfe\""), ""},
		"a path with half a character":       {deployment(), patch("/spec/\xff", "1"), ""},
		"a value of twenty thousand lists":   {deployment(), patch("/spec/n", deep), "plaintext[0] at /spec/n: the new value is no JSON"},
		"a path of twenty thousand parts":    {deployment(), patch(strings.Repeat("/a", 20_000), "1"), "plaintext[0] at /a/a"},
		"JSON of twenty thousand lists":      {configMap("a", deep), inside("json", "/-", "1"), "fieldOverrider[0] at /data/a: value is no JSON"},
		"YAML of twenty thousand lists":      {configMap("a", deep), inside("yaml", "/-", "1"), "fieldOverrider[0] at /data/a: value is no YAML: "},
		"YAML with half a character":         {configMap("a", "a: \xff\n"), inside("yaml", "/b", "1"), "fieldOverrider[0] at /data/a: value is no YAML: "},
		"YAML in UTF-16":                     {configMap("a", "\xff\xfea\x00:\x00 \x001\x00"), inside("yaml", "/b", "1"), ""},
		"JSON with half a character":         {configMap("a", "{\"a\":\"\xff\"}"), inside("json", "/b", "1"), ""},
		"YAML of another version":            {configMap("a", "%YAML 2.0\n---\na: 1\n"), inside("yaml", "/b", "1"), "fieldOverrider[0] at /data/a: value is no YAML: "},
		"YAML with keys that are no strings": {configMap("a", "? [a]\n: 1\n"), inside("yaml", "/b", "1"), "fieldOverrider[0] at /data/a: value is no YAML: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := apply(tc.obj, east(), []policyv1alpha1.Override{policyOf(tc.with)})
			got := strings.TrimPrefix(message(err), "override policy shop/op: overrideRules[0].")
			if !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("error = %.200q, want %q", got, tc.want)
			}
			if _, err := json.Marshal(tc.obj.Object); err != nil {
				t.Error(err)
			}
		})
	}
}
