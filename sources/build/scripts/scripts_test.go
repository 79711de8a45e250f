package scripts_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/build/scripts"
)

func TestWithout(t *testing.T) {
	const customization = `{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization", "metadata": {"name": "a"},
		"spec": {"target": {"kind": "Web"}, "customizations": {"retention": {"luaScript": "a ${b}"}, "replicaRevision": {"x": 1}, "statusReflection": 2}}}`
	for name, tc := range map[string]struct{ content, rest string }{
		"a customization": {customization, `{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization", "metadata": {"name": "a"},
			"spec": {"target": {"kind": "Web"}, "customizations": {"retention": {}, "replicaRevision": {"x": 1}, "statusReflection": 2}}}`},
		"another kind": {`{"kind": "ConfigMap", "spec": {"customizations": {"retention": {"luaScript": "a"}}}}`, `{"kind": "ConfigMap", "spec": {"customizations": {"retention": {"luaScript": "a"}}}}`},
		"another group": {`{"apiVersion": "example.com/v1", "kind": "ResourceInterpreterCustomization", "spec": {"customizations": {"retention": {"luaScript": "a"}}}}`,
			`{"apiVersion": "example.com/v1", "kind": "ResourceInterpreterCustomization", "spec": {"customizations": {"retention": {"luaScript": "a"}}}}`},
		"no scripts": {`{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization"}`, `{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization"}`},
		"no object":  {`[1]`, `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			content := read(t, tc.content)
			rest, restore := scripts.Without(content)
			if diff := cmp.Diff(read(t, tc.rest), rest); diff != "" {
				t.Errorf("without scripts (-want +got):\n%s", diff)
			}
			restore(rest)
			if diff := cmp.Diff(read(t, tc.content), rest); diff != "" {
				t.Errorf("with scripts again (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(read(t, tc.content), content); diff != "" {
				t.Errorf("what was given is changed (-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
