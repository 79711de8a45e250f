package build_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/sources/build"
)

// words are what YAML 1.1 and YAML 1.2 do not take for the same, and some beside them.
var words = strings.Fields("y Y yes Yes YES n N no No NO on On ON off Off OFF true True TRUE false null ~ 0o17 017 0b11 1_000 0x1F 1e3 +1 .5 12:30:45 !!str=yes 'yes' \"no\"")

// TestWordsOfYAML: what a text is, or a boolean, is as kustomize has it, and so Flux: without variables and through them, in
// manifests, in patches of both forms and in what a kustomization generates.
func TestWordsOfYAML(t *testing.T) {
	for _, word := range words {
		word = strings.ReplaceAll(word, "=", " ")
		t.Run(word, func(t *testing.T) {
			source := map[string]string{
				"kustomization.yaml": "resources: [a.yaml]\npatches:\n- {path: json.yaml, target: {kind: Thing}}\n- {path: merge.yaml}\n" +
					"configMapGenerator:\n- {name: c, literals: [x=yes], options: {disableNameSuffixHash: on}}\n",
				"a.yaml":     "apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: a}\nspec:\n  plain: " + word + "\n  list: [" + word + "]\n  \"" + strings.Trim(word, `"'`) + "\": key\n",
				"json.yaml":  "- {op: add, path: /spec/json, value: " + word + "}\n",
				"merge.yaml": "apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: a}\nspec: {merge: " + word + "}\n",
			}
			disk := filesys.MakeFsInMemory()
			for name, content := range source {
				if err := disk.WriteFile("/"+name, []byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/")
			if err != nil {
				t.Fatal(err)
			}
			for through, spec := range map[string]build.Spec{"as they are": {}, "through variables": {AlwaysSubstitute: true, Variables: map[string]string{"v": "$"}}} {
				got, err := build.New(build.Limits{}).Build(t.Context(), build.Input{Files: files(source), Spec: spec})
				if err != nil {
					t.Fatal(err)
				}
				objects := map[string]any{}
				for _, obj := range got {
					objects[obj.GetName()] = obj.Object
				}
				for _, r := range made.Resources() {
					text, err := r.AsYAML() // as Flux sends it
					if err != nil {
						t.Fatal(err)
					}
					var want map[string]any
					if err := yaml.Unmarshal(text, &want); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", inFloats(objects[r.GetName()]))); diff != "" {
						t.Errorf("%s, %s (-kustomize +build):\n%s", r.GetName(), through, diff)
					}
				}
			}
		})
	}
}

// inFloats returns a value with all numbers as JSON has them.
func inFloats(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range value {
			out[k] = inFloats(v)
		}
		return out
	case []any:
		out := []any{}
		for _, v := range value {
			out = append(out, inFloats(v))
		}
		return out
	case int64:
		return float64(value)
	default:
		return value
	}
}
