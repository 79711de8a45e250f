package override_test

import "testing"

// TestCommandAndArgs changes what containers run.
func TestCommandAndArgs(t *testing.T) {
	const (
		first  = "/spec/template/spec/containers/0/"
		second = "/spec/template/spec/containers/1/"
	)
	cases := map[string]change{
		"arguments are appended in their order": {
			obj: deployment(), with: "argsOverrider: [{containerName: app, operator: add, value: [-c, -a]}]",
			want: map[string]any{first + "args": []any{"-a", "-b", "-a", "-c", "-a"}, second + "args": nil},
		},
		"every argument that equals a value is removed": {
			obj: deployment(), with: "argsOverrider: [{containerName: app, operator: remove, value: [-a, -x]}]",
			want: map[string]any{first + "args": []any{"-b"}},
		},
		"the last argument leaves an empty list": {
			obj: deployment(), with: "argsOverrider: [{containerName: app, operator: remove, value: [-a, -b]}]",
			want: map[string]any{first + "args": []any{}},
		},
		"arguments are made where there are none": {
			obj: deployment(), with: "argsOverrider: [{containerName: side, operator: add, value: [-s]}]",
			want: map[string]any{second + "args": []any{"-s"}},
		},
		"removing where there are none makes none": {
			obj: deployment(), with: "argsOverrider: [{containerName: side, operator: remove, value: [-s]}]",
			want: map[string]any{second + "args": nil},
		},
		"a command is made, added to and removed from": {
			obj: deployment(), with: `
commandOverrider:
- {containerName: app, operator: add, value: [/bin/sh, -c]}
- {containerName: app, operator: add, value: [run]}
- {containerName: app, operator: remove, value: [-c]}`,
			want: map[string]any{first + "command": []any{"/bin/sh", "run"}, first + "args": []any{"-a", "-b", "-a"}},
		},
		"a container that is not there is no error": {
			obj: deployment(), with: "argsOverrider: [{containerName: nobody, operator: add, value: [-n]}]",
			want: map[string]any{first + "args": []any{"-a", "-b", "-a"}, second + "args": nil},
		},
		"init containers are left alone": {
			obj: deployment(), with: "argsOverrider: [{containerName: init, operator: add, value: [-n]}]",
			want: map[string]any{"/spec/template/spec/initContainers/0/args": nil},
		},
		"kinds without containers that are known are left alone": {
			obj: configMap("a", "b"), with: "{argsOverrider: [{containerName: app, operator: add, value: [-n]}], commandOverrider: [{containerName: app, operator: remove, value: [-n]}]}",
			want: map[string]any{"/data": map[string]any{"a": "b"}},
		},
		"arguments that are no list": {
			obj: of("{kind: Pod, metadata: {name: w, namespace: shop}, spec: {containers: [{name: app, args: -a}]}}"), with: "argsOverrider: [{containerName: app, operator: add, value: [-n]}]",
			err: "argsOverrider[0] at /spec/containers/0/args: value is not a list of strings: correct the template",
		},
		"arguments cannot be replaced": {
			obj: deployment(), with: "argsOverrider: [{containerName: app, operator: replace, value: [-n]}]",
			err: `argsOverrider[0] at ` + first + `args: operator "replace" is not one of those allowed here`,
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

// TestLabelsAndAnnotations changes the metadata of the object itself.
func TestLabelsAndAnnotations(t *testing.T) {
	cases := map[string]change{
		"a label is added to those that are there": {
			obj: deployment(), with: "labelsOverrider: [{operator: add, value: {zone: a}}]",
			want: map[string]any{"/metadata/labels": map[string]any{"app": "web", "zone": "a"}, "/spec/template/metadata": nil},
		},
		"add puts a value in the place of another": {
			obj: deployment(), with: "labelsOverrider: [{operator: add, value: {app: api}}]",
			want: map[string]any{"/metadata/labels": map[string]any{"app": "api"}},
		},
		"replace changes only what is there": {
			obj: deployment(), with: "labelsOverrider: [{operator: replace, value: {app: api, other: never}}]",
			want: map[string]any{"/metadata/labels": map[string]any{"app": "api"}},
		},
		"remove looks at keys only": {
			obj: deployment(), with: "labelsOverrider: [{operator: remove, value: {app: whatever, other: ''}}]",
			want: map[string]any{"/metadata/labels": nil},
		},
		"annotations are made where there are none": {
			obj: deployment(), with: "annotationsOverrider: [{operator: add, value: {a/b: '1'}}, {operator: replace, value: {a/b: '2'}}]",
			want: map[string]any{"/metadata/annotations": map[string]any{"a/b": "2"}},
		},
		"removing annotations where there are none makes none": {
			obj: deployment(), with: "annotationsOverrider: [{operator: remove, value: {a: ''}}]",
			want: map[string]any{"/metadata/annotations": nil},
		},
		"every kind has them": {
			obj: configMap("a", "b"), with: "{labelsOverrider: [{operator: add, value: {a: b}}], annotationsOverrider: [{operator: add, value: {c: d}}]}",
			want: map[string]any{"/metadata/labels": map[string]any{"a": "b"}, "/metadata/annotations": map[string]any{"c": "d"}},
		},
		"labels that are no strings": {
			obj: of("{kind: X, metadata: {name: w, namespace: shop, labels: {n: 1}}}"), with: "labelsOverrider: [{operator: add, value: {a: b}}]",
			err: "labelsOverrider[0] at /metadata/labels: value is not a map of strings: correct the template",
		},
		"an operator that there is not": {
			obj: deployment(), with: "annotationsOverrider: [{operator: move, value: {a: b}}]",
			err: `annotationsOverrider[0] at /metadata/annotations: operator "move" is not one of those allowed here`,
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}
