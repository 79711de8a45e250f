package patterns_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/flotilla-io/flotilla/sources/build/patterns"
)

func TestKustomization(t *testing.T) {
	const large = "((a{100}){100})"
	for name, tc := range map[string]struct {
		text   string
		field  string // of the error; empty for none
		weighs bool
	}{
		"names only":                        {text: "patches: [{patch: x, target: {group: apps, kind: Deployment, name: web, namespace: shop}}]\nimages: [{name: ghcr.io/org/app}]\n"},
		"a pattern":                         {text: "patches: [{patch: x, target: {name: web-.*}}]\n", weighs: true},
		"what is no expression":             {text: "patches: [{patch: x, target: {name: '*'}}]\n"},
		"a patch without a target":          {text: "patches: [{patch: x}]\n"},
		"the group of a patch":              {text: "patches: [{patch: x}, {patch: x, target: {group: '" + large + "'}}]\n", field: "patches[1].target.group"},
		"the version of a patch":            {text: "patches: [{patch: x, target: {version: '" + large + "'}}]\n", field: "patches[0].target.version"},
		"the kind of a patch":               {text: "patches: [{patch: x, target: {kind: '" + large + "'}}]\n", field: "patches[0].target.kind"},
		"the name of a patch":               {text: "patches: [{patch: x, target: {name: '" + large + "'}}]\n", field: "patches[0].target.name"},
		"the namespace of a patch":          {text: "patches: [{patch: x, target: {namespace: '" + large + "'}}]\n", field: "patches[0].target.namespace"},
		"an expression within kustomize's":  {text: "patches: [{patch: x, target: {name: 'x)|" + large + "|(?:x'}}]\n", field: "patches[0].target.name"},
		"the target of a JSON patch":        {text: "patchesJson6902: [{patch: x, target: {name: '" + large + "'}}]\n", field: "patchesJson6902[0].target.name"},
		"an image":                          {text: "images: [{name: web}, {name: '" + large + "'}]\n", field: "images[1].name"},
		"an image within kustomize's":       {text: "images: [{name: 'x(" + large + "|[', newTag: v1}]\n", field: "images[0].name"},
		"what a replacement selects":        {text: "replacements: [{targets: [{select: {name: '" + large + "'}}]}]\n", field: "replacements[0].targets[0].select.name"},
		"what a replacement rejects":        {text: "replacements: [{targets: [{select: {name: web}, reject: [{kind: '" + large + "'}]}]}]\n", field: "replacements[0].targets[0].reject[0].kind"},
		"the path of a field":               {text: "replacements: [{targets: [{select: {name: web}, fieldPaths: [a, 'spec.[name=" + large + "].image']}]}]\n", field: "replacements[0].targets[0].fieldPaths[1]"},
		"the path of a field with brackets": {text: "replacements: [{targets: [{select: {name: web}, fieldPaths: ['spec.[=a.b." + large + "]']}]}]\n", field: "replacements[0].targets[0].fieldPaths[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			var k types.Kustomization
			if err := k.Unmarshal([]byte(tc.text)); err != nil {
				t.Fatal(err)
			}
			weight, err := patterns.Kustomization(k)
			switch {
			case tc.field == "" && err != nil:
				t.Error(err)
			case tc.field != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.field+" is too large a regular expression: ")):
				t.Errorf("error %v, want one of %s", err, tc.field)
			case (weight > 0) != tc.weighs:
				t.Errorf("it weighs %d", weight)
			}
		})
	}
}

func TestFile(t *testing.T) {
	const large = "((a{100}){100})"
	for name, tc := range map[string]struct{ text, field string }{
		"a transformer of patches":  {text: "{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, patch: '" + large + "', target: {name: web}}"},
		"its target":                {text: "{target: {name: '" + large + "'}}", field: "name"},
		"a key with capitals":       {text: "{target: {Name: '" + large + "'}}", field: "Name"},
		"a key that is an alias":    {text: "{x: &n name, target: {*n : '" + large + "'}}", field: "name"},
		"what is merged":            {text: "{x: &t {kind: '" + large + "'}, target: {<<: *t}}", field: "kind"},
		"a list of replacements":    {text: "[{targets: [{select: {namespace: '" + large + "'}}]}]", field: "namespace"},
		"the path of a replacement": {text: "{targets: [{select: {name: x}, fieldPaths: ['spec.[name=" + large + "]']}]}", field: "fieldPaths"},
		"an image":                  {text: "{imageTag: {name: '(" + large + "|[', newTag: v1}}", field: "name"},
	} {
		t.Run(name, func(t *testing.T) {
			var node yaml.Node
			if err := yaml.Unmarshal([]byte(tc.text), &node); err != nil {
				t.Fatal(err)
			}
			_, err := patterns.File(&node)
			if (err != nil) != (tc.field != "") || err != nil && !strings.HasPrefix(err.Error(), tc.field+" is too large a regular expression: ") {
				t.Errorf("error %v, want one of %q", err, tc.field)
			}
		})
	}
}
