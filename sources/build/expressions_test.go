package build_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"

	"github.com/flotilla-io/flotilla/sources/build"
)

// TestExpressionsAreWeighed: kustomize compiles what it finds, and an expression of a few bytes can take gigabytes.
func TestExpressionsAreWeighed(t *testing.T) {
	const large = "(a{100}){100}"
	listed := func(more string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [a.yaml]\n" + more, "a.yaml": configMap("a")}
	}
	and := func(of map[string]string, name, content string) map[string]string {
		of[name] = content
		return of
	}
	const patch = `[{"op": "add", "path": "/data", "value": {}}]`
	target := &kustomize.Selector{Kind: "ConfigMap", Name: large}
	for name, tc := range map[string]struct {
		files map[string]string
		spec  build.Spec
		says  string // empty if it is built
	}{
		"a small one":                {files: listed("patches: [{target: {kind: Conf.*, name: a|b}, patch: '" + patch + "'}]\n")},
		"the target of a patch":      {files: listed("patches: [{target: {name: '" + large + "'}, patch: '" + patch + "'}]\n"), says: "kustomization.yaml: not allowed: patches[0].target.name is too large"},
		"one of spec.patches":        {files: listed(""), spec: build.Spec{Patches: []kustomize.Patch{{Patch: patch, Target: target}}}, says: "spec: not allowed: patches[0].target.name is too large"},
		"one of spec.images":         {files: listed(""), spec: build.Spec{Images: []kustomize.Image{{Name: large, NewTag: "v1"}}}, says: "spec: not allowed: images[0].name is too large"},
		"a kustomization below":      {files: map[string]string{"kustomization.yaml": "resources: [sub]\n", "sub/kustomization.yaml": "resources: [a.yaml]\nimages: [{name: '" + large + "', newTag: v1}]\n", "sub/a.yaml": configMap("a")}, says: "sub/kustomization.yaml: not allowed: images[0].name is too large"},
		"a component":                {files: and(listed("components: [c]\n"), "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{target: {kind: '"+large+"'}, patch: '"+patch+"'}]\n"), says: "c/kustomization.yaml: not allowed: patches[0].target.kind is too large"},
		"a file of replacements":     {files: and(listed("replacements: [{path: r.yaml}]\n"), "r.yaml", "{source: {kind: ConfigMap, name: a}, targets: [{select: {name: '"+large+"'}}]}\n"), says: "r.yaml: not allowed: name is too large"},
		"a list of them in a file":   {files: and(listed("replacements: [{path: r.yaml}]\n"), "r.yaml", "- {source: {kind: ConfigMap, name: a}, targets: [{select: {name: b}, fieldPaths: ['data.[="+large+"]']}]}\n"), says: "r.yaml: not allowed: fieldPaths is too large"},
		"a transformer":              {files: listed("transformers:\n- |-\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, patch: '" + patch + "', target: {name: '" + large + "'}}\n"), says: "kustomization.yaml: transformers: not allowed: name is too large"},
		"the file of a transformer":  {files: and(listed("transformers: [t.yaml]\n"), "t.yaml", "{apiVersion: builtin, kind: ImageTagTransformer, metadata: {name: x}, imageTag: {Name: '"+large+"', newTag: v1}}\n"), says: "kustomization.yaml: transformers: not allowed: Name is too large"},
		"replacements of a plugin":   {files: and(listed("transformers:\n- |-\n  {apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: x}, replacements: [{path: r.yaml}]}\n"), "r.yaml", "{source: {kind: ConfigMap, name: a}, targets: [{select: {name: '"+large+"'}}]}\n"), says: "r.yaml: not allowed: name is too large"},
		"patches that are text only": {files: and(listed("patches: [{path: p.yaml}]\n"), "p.yaml", configMap("a")+"data: {name: '"+strings.Repeat("x", 3000)+"'}\n")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build.New(build.Limits{}).Build(t.Context(), build.Input{Files: files(tc.files), Spec: tc.spec})
			switch {
			case tc.says == "" && err != nil:
				t.Error(err)
			case tc.says != "" && (!errors.Is(err, build.ErrRefused) || !strings.HasPrefix(err.Error(), tc.says)):
				t.Errorf("error %v, want one that begins with %q", err, tc.says)
			}
		})
	}
}
