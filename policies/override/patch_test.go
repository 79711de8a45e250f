package override_test

import (
	"math"
	"testing"
)

// TestPlaintext patches any field.
func TestPlaintext(t *testing.T) {
	const missing = "nothing is there: narrow the rule to what has it, or add it first"
	cases := map[string]change{
		"the steps of a rule are one patch, in their order": {
			obj: deployment(), with: `
plaintext:
- {path: /spec/strategy, operator: add, value: {type: Recreate}}
- {path: /spec/strategy/type, operator: replace, value: RollingUpdate}
- {path: /spec/replicas, operator: remove}`,
			want: map[string]any{"/spec/strategy": map[string]any{"type": "RollingUpdate"}, "/spec/replicas": nil},
		},
		"a patch sees what the other overriders of its rule did": {
			obj: deployment(), with: "{labelsOverrider: [{operator: add, value: {zone: a}}], plaintext: [{path: /metadata/labels/zone, operator: replace, value: b}]}",
			want: map[string]any{"/metadata/labels": map[string]any{"app": "web", "zone": "b"}},
		},
		"a dash appends to a list": {
			obj: deployment(), with: "plaintext: [{path: /spec/template/spec/containers/-, operator: add, value: {name: x, ports: [1]}}]",
			want: map[string]any{"/spec/template/spec/containers/2": map[string]any{"name": "x", "ports": []any{int64(1)}}},
		},
		"an index puts something before what is there": {
			obj: deployment(), with: "plaintext: [{path: /spec/template/spec/containers/0/args/1, operator: add, value: -x}]",
			want: map[string]any{"/spec/template/spec/containers/0/args": []any{"-a", "-x", "-b", "-a"}},
		},
		"minus one is the last element": {
			obj: deployment(), with: "plaintext: [{path: /spec/template/spec/containers/0/args/-1, operator: remove}]",
			want: map[string]any{"/spec/template/spec/containers/0/args": []any{"-a", "-b"}},
		},
		"add puts a value in the place of another": {
			obj: deployment(), with: "plaintext: [{path: /spec/replicas, operator: add, value: 5}]", want: map[string]any{"/spec/replicas": int64(5)},
		},
		"a value of null is a value": {
			obj: deployment(), with: "plaintext: [{path: /spec/replicas, operator: replace, value: null}]", want: map[string]any{"/spec/replicas": nil},
		},
		"no value is null": {
			obj: deployment(), with: "plaintext: [{path: /spec/paused, operator: add}]", want: map[string]any{"/spec/paused": nil},
		},
		"slashes and tildes in keys are escaped": {
			obj: deployment(), with: "{annotationsOverrider: [{operator: add, value: {a/b~c: '1'}}], plaintext: [{path: /metadata/annotations/a~1b~0c, operator: replace, value: '2'}]}",
			want: map[string]any{"/metadata/annotations": map[string]any{"a/b~c": "2"}},
		},
		"tilde, nought and one are unescaped in this order": {
			obj: deployment(), with: "plaintext: [{path: /metadata/annotations, operator: add, value: {}}, {path: /metadata/annotations/x~01, operator: add, value: '1'}]",
			want: map[string]any{"/metadata/annotations": map[string]any{"x~1": "1"}},
		},
		"whole numbers stay whole, others do not become so": {
			obj: deployment(), with: "plaintext: [{path: /spec/big, operator: add, value: 9223372036854775807}, {path: /spec/half, operator: add, value: 0.5}]",
			want: map[string]any{"/spec/big": int64(math.MaxInt64), "/spec/half": 0.5},
		},
		"other kinds are patched the same way": {
			obj: configMap("a", "b"), with: "plaintext: [{path: /data/c, operator: add, value: d}]", want: map[string]any{"/data": map[string]any{"a": "b", "c": "d"}},
		},

		"replacing what is not there": {
			obj: deployment(), with: "plaintext: [{path: /spec/replicas, operator: replace, value: 3}, {path: /spec/gone/deep, operator: replace, value: 3}]",
			err: "plaintext[1] at /spec/gone/deep: " + missing,
		},
		"removing what is not there": {
			obj: deployment(), with: "plaintext: [{path: /spec/gone, operator: remove}]", err: "plaintext[0] at /spec/gone: " + missing,
		},
		"adding below what is not there": {
			obj: deployment(), with: "plaintext: [{path: /spec/gone/deep, operator: add, value: 1}]", err: "plaintext[0] at /spec/gone/deep: " + missing,
		},
		"adding below a number": {
			obj: deployment(), with: "plaintext: [{path: /spec/replicas/x, operator: add, value: 1}]", err: "plaintext[0] at /spec/replicas/x: " + missing,
		},
		"adding below a null of the patch itself": {
			obj: deployment(), with: "plaintext: [{path: /spec/a, operator: add, value: null}, {path: /spec/a/b, operator: add, value: 1}]", err: "plaintext[1] at /spec/a/b: " + missing,
		},
		"an index beyond the list": {
			obj: deployment(), with: "plaintext: [{path: /spec/template/spec/containers/7, operator: add, value: {}}]",
			err: "plaintext[0] at /spec/template/spec/containers/7: the list has no such index",
		},
		"an index before the list": {
			obj: deployment(), with: "plaintext: [{path: /spec/template/spec/containers/-9, operator: remove}]",
			err: "plaintext[0] at /spec/template/spec/containers/-9: the list has no such index",
		},
		"a path without a slash": {
			obj: deployment(), with: "plaintext: [{path: spec, operator: remove}]",
			err: `plaintext[0] at spec: path is not a JSON pointer: "spec" does not start with a slash`,
		},
		"a path with a stray tilde": {
			obj: deployment(), with: "plaintext: [{path: /a~b, operator: add, value: 1}]",
			err: `plaintext[0] at /a~b: path is not a JSON pointer: "/a~b" has a stray ~, which is written ~0`,
		},
		"an operator that would copy": {
			obj: deployment(), with: "plaintext: [{path: /spec, operator: copy}]", err: `plaintext[0] at /spec: operator "copy" is not one of those allowed here`,
		},
		"another namespace": {
			obj: deployment(), with: "plaintext: [{path: /metadata/namespace, operator: replace, value: kube-system}]",
			err: "plaintext: an override must not change apiVersion, kind, name or namespace: propagate another template instead",
		},
		"no metadata": {
			obj: deployment(), with: "plaintext: [{path: /metadata, operator: remove}]",
			err: "plaintext: an override must not change apiVersion, kind, name or namespace: propagate another template instead",
		},
		"the whole object in the place of another": {
			obj: deployment(), with: "plaintext: [{path: '', operator: replace, value: {kind: Other}}]",
			err: "plaintext: an override must not change apiVersion, kind, name or namespace: propagate another template instead",
		},
		"the whole object becomes a list": {
			obj: deployment(), with: "plaintext: [{path: '', operator: replace, value: []}]",
			err: "plaintext: the result is no object",
		},
		"the whole object is removed": {
			obj: deployment(), with: "plaintext: [{path: '', operator: remove}]", err: "plaintext[0]: the whole document can only become an object or a list",
		},
		"the whole object becomes a number": {
			obj: deployment(), with: "plaintext: [{path: '', operator: add, value: 3}]", err: "plaintext[0]: the whole document can only become an object or a list",
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}
