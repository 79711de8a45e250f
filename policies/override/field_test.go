package override_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// TestFieldOverrider patches documents that stand in strings.
func TestFieldOverrider(t *testing.T) {
	const missing = "nothing is there: narrow the rule to what has it, or add it first"
	json := func(text, steps, want, err string) change {
		return inString(text, "json", steps, want, err)
	}
	yaml := func(text, steps, want, err string) change {
		return inString(text, "yaml", steps, want, err)
	}
	cases := map[string]change{
		"JSON: a value is replaced in a list of objects":      json(`{"b":[{"c":1}]}`, "{subPath: /b/0/c, operator: replace, value: d}", `{"b":[{"c":"d"}]}`, ""),
		"JSON: keys keep their order, and new ones come last": json(`{"z":1,"a":2}`, "{subPath: /m, operator: add, value: 3}", `{"z":1,"a":2,"m":3}`, ""),
		"JSON: numbers stay as they are written": json(`{"a":12345678901234567890123,"b":1e400,"c":1.10}`, "{subPath: /d, operator: add, value: 0}",
			`{"a":12345678901234567890123,"b":1e400,"c":1.10,"d":0}`, ""),
		"JSON: signs of HTML stay as they are":                  json(`{"z":"<&>"}`, "{subPath: /y, operator: add, value: 0}", `{"z":"<&>","y":0}`, ""),
		"JSON: a dash appends to a list":                        json(`[1,2]`, "{subPath: /-, operator: add, value: {a: 3}}", `[1,2,{"a":3}]`, ""),
		"JSON: an element is removed":                           json(`{"a":[1,2,3]}`, "{subPath: /a/1, operator: remove}", `{"a":[1,3]}`, ""),
		"JSON: keys with slashes and tildes":                    json(`{"a/b":{"~":1}}`, "{subPath: /a~1b/~0, operator: replace, value: 2}", `{"a/b":{"~":2}}`, ""),
		"JSON: the empty key":                                   json(`{"":1}`, "{subPath: /, operator: replace, value: 2}", `{"":2}`, ""),
		"JSON: several steps, each on what the one before left": json(`{}`, "{subPath: /a, operator: add, value: {}}, {subPath: /a/b, operator: add, value: 1}", `{"a":{"b":1}}`, ""),
		"JSON: the whole document":                              json(`{"a":1}`, "{subPath: '', operator: replace, value: [2]}", `[2]`, ""),
		"JSON: the whole document where there is a null":        json(`null`, "{subPath: '', operator: add, value: {a: 1}}", `{"a":1}`, ""),
		"JSON: a step whose path is missing":                    json(`{}`, "{subPath: /a, operator: add, value: 1}, {subPath: /b, operator: remove}", "", `json[1] at "/b": `+missing),
		"JSON: a string that is none":                           json(`a`, "{subPath: /c, operator: add, value: 2}", "", "value is no JSON"),
		"JSON: an empty string is none":                         json(``, "{subPath: '', operator: add, value: {}}", "", "value is no JSON"),
		"JSON: two documents are none":                          json(`{} {}`, "{subPath: /c, operator: add, value: 2}", "", "value is no JSON"),
		"JSON: steps into a number":                             json(`3`, "{subPath: /c, operator: add, value: 2}", "", `json[0] at "/c": document is neither an object nor a list: replace it whole, with the empty path`),
		"JSON: a sub path that is no pointer":                   json(`{}`, "{subPath: c, operator: add, value: 2}", "", `json[0] at "c": path is not a JSON pointer: "c" does not start with a slash`),

		"YAML: a value is replaced":                                yaml("a: 1\nb: [x]\n", "{subPath: /b/0, operator: replace, value: 'y'}", "a: 1\nb:\n- \"y\"\n", ""),
		"YAML: comments and the order of keys go":                  yaml("# why\nz: 1 # yes\na: 2\n", "{subPath: /m, operator: add, value: 3}", "a: 2\nm: 3\nz: 1\n", ""),
		"YAML: strings that look like something else stay strings": yaml("a: \"1.10\"\nb: 'true'\nc: \"null\"\nd: 0x1f\n", "{subPath: /e, operator: add, value: 'no'}", "a: \"1.10\"\nb: \"true\"\nc: \"null\"\nd: 31\ne: \"no\"\n", ""),
		"YAML: long texts stay":                                    yaml("a: |\n  one\n  two\n", "{subPath: /b, operator: add, value: 1}", "a: |\n  one\n  two\nb: 1\n", ""),
		"YAML: aliases are written out":                            yaml("a: &x {k: 1}\nb: *x\n", "{subPath: /b/k, operator: replace, value: 2}", "a:\n  k: 1\nb:\n  k: 2\n", ""),
		"YAML: JSON is YAML":                                       yaml(`{"a": 1}`, "{subPath: /b, operator: add, value: 2}", "a: 1\nb: 2\n", ""),
		"YAML: a document with its marks":                          yaml("---\na: 1\n---\n", "{subPath: /b, operator: add, value: 2}", "a: 1\nb: 2\n", ""),
		"YAML: a dash appends to a list":                           yaml("- 1\n", "{subPath: /-, operator: add, value: 2}", "- 1\n- 2\n", ""),
		"YAML: an empty string can be written whole":               yaml("", "{subPath: '', operator: add, value: {a: 1}}, {subPath: /b, operator: add, value: 2}", "a: 1\nb: 2\n", ""),
		"YAML: steps into an empty string":                         yaml("", "{subPath: /a, operator: add, value: 1}", "", `yaml[0] at "/a": document is neither an object nor a list: replace it whole, with the empty path`),
		"YAML: steps into comments alone":                          yaml("# later\n", "{subPath: /a, operator: add, value: 1}", "", `yaml[0] at "/a": document is neither an object nor a list: replace it whole, with the empty path`),
		"YAML: several documents":                                  yaml("a: 1\n---\nb: 2\n", "{subPath: /a, operator: remove}", "", "value has several YAML documents: put each in a field of its own"),
		"YAML: a string that is none":                              yaml("a: [\n", "{subPath: /c, operator: add, value: 2}", "", "value is no YAML: yaml: line 1: did not find expected node content"),
		"YAML: an anchor that contains itself":                     yaml("a: &x [*x]\n", "{subPath: /c, operator: add, value: 2}", "", "value is no YAML: an anchor contains itself"),
		"YAML: numbers that JSON has not":                          yaml("a: .inf\n", "{subPath: /c, operator: add, value: 2}", "", "value is no YAML: json: unsupported value: +Inf"),
		"YAML: a step whose path is missing":                       yaml("a: 1\n", "{subPath: /b/c, operator: add, value: 2}", "", `yaml[0] at "/b/c": `+missing),

		"no steps, no change": {obj: configMap("a", "no document"), with: "fieldOverrider: [{fieldPath: /data/a}]", want: map[string]any{"/data/a": "no document"}},
		"steps for both: those for YAML count": {
			obj: configMap("a", "{}"), with: "fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /j, operator: add, value: 1}], yaml: [{subPath: /y, operator: add, value: 1}]}]",
			want: map[string]any{"/data/a": "\"y\": 1\n"},
		},
		"a field whose key has a slash": {
			obj: configMap("dir/a.yaml", "b: 1\n"), with: "fieldOverrider: [{fieldPath: /data/dir~1a.yaml, yaml: [{subPath: /c, operator: add, value: [2]}]}]",
			want: map[string]any{"/data/dir~1a.yaml": "b: 1\nc:\n- 2\n"},
		},
		"a field in a list": {
			obj: deployment(), with: "{plaintext: [], fieldOverrider: [{fieldPath: /spec/template/spec/containers/0/args/0, json: [{subPath: '', operator: replace, value: {}}]}]}",
			err: "fieldOverrider[0] at /spec/template/spec/containers/0/args/0: value is no JSON",
		},
		"a field that is no string": {
			obj: deployment(), with: "fieldOverrider: [{fieldPath: /spec/replicas, json: [{subPath: /c, operator: add, value: 2}]}]",
			err: "fieldOverrider[0] at /spec/replicas: value is not a string: use plaintext for other values",
		},
		"a field that is not there": {
			obj: configMap("a", "{}"), with: "fieldOverrider: [{fieldPath: /data/b, json: [{subPath: /c, operator: add, value: 2}]}]",
			err: `fieldOverrider[0] at /data/b: path does not exist: there is no "b": narrow the rule to what has it`,
		},
		"a field below a number": {
			obj: deployment(), with: "fieldOverrider: [{fieldPath: /spec/replicas/x, json: [{subPath: /c, operator: add, value: 2}]}]",
			err: `fieldOverrider[0] at /spec/replicas/x: path does not exist: there is no "x": narrow the rule to what has it`,
		},
		"the whole object is no field": {
			obj: deployment(), with: "fieldOverrider: [{fieldPath: '', json: [{subPath: /c, operator: add, value: 2}]}]",
			err: "fieldOverrider[0]: value is not a string: the path means the whole manifest",
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

// inString is a change of the document under /data/a.
func inString(text, language, steps, want, err string) change {
	c := change{obj: configMap("a", text), with: "fieldOverrider: [{fieldPath: /data/a, " + language + ": [" + steps + "]}]"}
	if err != "" {
		c.err = "fieldOverrider[0] at /data/a: " + err
	} else {
		c.want = map[string]any{"/data/a": want}
	}
	return c
}

// TestSecretData: what is encoded is no document.
func TestSecretData(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "shop", "name": "s"},
		"data": map[string]any{"a": "e30="}, "stringData": map[string]any{"b": "{}"},
	}}
	change{
		obj: secret, with: "fieldOverrider: [{fieldPath: /stringData/b, json: [{subPath: /c, operator: add, value: 1}]}]",
		want: map[string]any{"/stringData/b": `{"c":1}`},
	}.run(t)
	change{
		obj: secret, with: "fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /c, operator: add, value: 1}]}]",
		err: "fieldOverrider[0] at /data/a: value is no JSON",
	}.run(t)
}

// TestErrorsDoNotRepeatSecrets: who may write an override reads its errors, and
// need not be allowed to read Secrets.
func TestErrorsDoNotRepeatSecrets(t *testing.T) {
	secret := of("{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: s}, stringData: {image: HUNTER2==, yaml: '{a: *HUNTER2}'}}")
	const noImage = "value is no image, or the result is none: correct the rule"
	for name, tc := range map[string]struct{ with, err string }{
		"an image": {
			"imageOverrider: [{predicate: {path: /stringData/image}, component: Tag, operator: add, value: x}]",
			"imageOverrider[0] at /stringData/image: " + noImage,
		},
		"an image, once it seems to be another kind": {
			"imageOverrider: [{predicate: {path: /kind}, component: Registry, operator: add, value: x}, {predicate: {path: /apiVersion}, component: Tag, operator: add, value: x}, {predicate: {path: /stringData/image}, component: Tag, operator: add, value: x}]",
			"",
		},
		"a document": {
			"fieldOverrider: [{fieldPath: /stringData/yaml, yaml: [{subPath: /a, operator: add, value: x}]}]",
			"fieldOverrider[0] at /stringData/yaml: value is no YAML",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apply(secret.DeepCopy(), east(), []policyv1alpha1.Override{policyOf(overriders(tc.with))})
			switch {
			case err == nil:
				t.Fatal("no error")
			case strings.Contains(err.Error(), "HUNTER2"):
				t.Errorf("the error repeats the secret: %v", err)
			case !strings.HasSuffix(err.Error(), tc.err):
				t.Errorf("error %v, want %s", err, tc.err)
			}
		})
	}
}
