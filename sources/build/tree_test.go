package build_test

import (
	"maps"
	"testing"

	"github.com/flotilla-io/flotilla/sources/build"
)

// TestReads checks that what a build has read is the same in other files exactly
// if they build the same.
func TestReads(t *testing.T) {
	config := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }
	files := map[string]string{
		"README.md":                       "about",
		"app/kustomization.yaml":          "resources: [web.yaml, ../base]\nconfigMapGenerator: [{name: made, files: [settings.txt]}]\npatches: [{path: patch.yaml}]\n",
		"app/web.yaml":                    config("web"),
		"app/settings.txt":                "key=value",
		"app/patch.yaml":                  config("web") + "data: {a: b}\n",
		"app/unused.yaml":                 config("unused"),
		"base/kustomization.yaml":         "resources: [base.yaml]\n",
		"base/base.yaml":                  config("base"),
		"plain/one.yaml":                  config("one"),
		"plain/notes.txt":                 "",
		"plain/below/two.yaml":            config("two"),
		"plain/own/kustomization.yaml":    "resources: [three.yaml]\n",
		"plain/own/three.yaml":            config("three"),
		"elsewhere/kustomization.yaml":    "resources: [four.yaml]\n",
		"elsewhere/four.yaml":             config("four"),
		"elsewhere/below/more/notes.yaml": config("five"),
	}
	tree := func(changes map[string]string) *build.Tree {
		all := maps.Clone(files)
		maps.Copy(all, changes)
		out := map[string][]byte{}
		for name, text := range all {
			if text != "gone" {
				out[name] = []byte(text)
			}
		}
		return build.NewTree(out)
	}
	for name, tc := range map[string]struct {
		path    string
		changes map[string]string
		differs bool
	}{
		"nothing":                               {path: "app"},
		"what nobody reads":                     {path: "app", changes: map[string]string{"README.md": "more", "app/unused.yaml": "gone", "elsewhere/four.yaml": config("other"), "new/file.yaml": config("new")}},
		"a resource":                            {path: "app", changes: map[string]string{"app/web.yaml": config("other")}, differs: true},
		"the kustomization":                     {path: "app", changes: map[string]string{"app/kustomization.yaml": "resources: [web.yaml]\n"}, differs: true},
		"a base":                                {path: "app", changes: map[string]string{"base/base.yaml": config("other")}, differs: true},
		"a file of a generator":                 {path: "app", changes: map[string]string{"app/settings.txt": "key=other"}, differs: true},
		"a patch":                               {path: "app", changes: map[string]string{"app/patch.yaml": config("web") + "data: {a: c}\n"}, differs: true},
		"a resource that goes":                  {path: "app", changes: map[string]string{"app/web.yaml": "gone"}, differs: true},
		"another file in the folder":            {path: "app", changes: map[string]string{"app/more.yaml": config("more")}},
		"a second kustomization":                {path: "app", changes: map[string]string{"app/kustomization.yml": "resources: []\n"}, differs: true},
		"a manifest of a plain folder":          {path: "plain", changes: map[string]string{"plain/one.yaml": config("other")}, differs: true},
		"a new one in it":                       {path: "plain", changes: map[string]string{"plain/new.yaml": config("new")}, differs: true},
		"a new one below it":                    {path: "plain", changes: map[string]string{"plain/below/new.yaml": config("new")}, differs: true},
		"one that goes":                         {path: "plain", changes: map[string]string{"plain/below/two.yaml": "gone"}, differs: true},
		"text beside its manifests":             {path: "plain", changes: map[string]string{"plain/notes.txt": "more"}},
		"a kustomization below it":              {path: "plain", changes: map[string]string{"plain/below/kustomization.yaml": "resources: [two.yaml]\n"}, differs: true},
		"what a kustomization below it does":    {path: "plain", changes: map[string]string{"plain/own/three.yaml": config("other")}, differs: true},
		"a kustomization of its own":            {path: "plain", changes: map[string]string{"plain/kustomization.yaml": "resources: [one.yaml]\n"}, differs: true},
		"another folder":                        {path: "plain", changes: map[string]string{"app/web.yaml": config("other"), "elsewhere/below/more/notes.yaml": "gone"}},
		"what lies below another kustomization": {path: "elsewhere", changes: map[string]string{"elsewhere/below/more/notes.yaml": config("six")}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, reads, err := build.New(build.Limits{}).BuildFrom(t.Context(), tree(nil), build.Input{Path: tc.path})
			if err != nil || len(objects) == 0 {
				t.Fatalf("%d objects, %v", len(objects), err)
			}
			if same := reads.Same(tree(tc.changes)); same == tc.differs {
				t.Errorf("it is the same: %v", same)
			}
		})
	}
	_, reads, err := build.New(build.Limits{}).BuildFrom(t.Context(), tree(map[string]string{"app/web.yaml": "{"}), build.Input{Path: "app"})
	if err == nil || reads.Same(tree(nil)) {
		t.Errorf("a build that failed, with %v, is the same as another", err)
	}
}
