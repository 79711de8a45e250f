package build_test

import (
	"errors"
	"testing"

	"github.com/flotilla-io/flotilla/sources/build"
)

// TestLinks: a symbolic link that is used is named as one, and others are left out.
func TestLinks(t *testing.T) {
	const says = "is a symbolic link, which is not followed: commit the file itself"
	files := func(kustomization string) map[string]string {
		return map[string]string{"apps/kustomization.yaml": kustomization, "apps/a.yaml": configMap("a")}
	}
	for name, tc := range map[string]struct {
		files map[string]string
		path  string // default: apps
		link  string
		want  error
		says  string // the whole of it; empty for none
	}{
		"that nobody uses":        {files: files("resources: [a.yaml]\n"), link: "apps/b.yaml"},
		"beside plain manifests":  {files: map[string]string{"apps/a.yaml": configMap("a")}, link: "apps/b.yaml"},
		"a resource":              {files: files("resources: [b.yaml]\n"), link: "apps/b.yaml", want: build.ErrInvalid, says: "apps/kustomization.yaml: resources: invalid manifest: apps/b.yaml " + says},
		"a base":                  {files: files("resources: [../base]\n"), link: "base", want: build.ErrInvalid, says: "apps/kustomization.yaml: resources: invalid manifest: base " + says},
		"on the way to a base":    {files: files("resources: [../base/x/y]\n"), link: "base", want: build.ErrInvalid, says: "apps/kustomization.yaml: resources: invalid manifest: base " + says},
		"a component":             {files: files("resources: [a.yaml]\ncomponents: [c]\n"), link: "apps/c", want: build.ErrInvalid, says: "apps/kustomization.yaml: components: invalid manifest: apps/c " + says},
		"a patch":                 {files: files("resources: [a.yaml]\npatches: [{path: p.yaml}]\n"), link: "apps/p.yaml", want: build.ErrInvalid, says: "apps/kustomization.yaml: patches: invalid manifest: apps/p.yaml " + says},
		"a strategic merge patch": {files: files("resources: [a.yaml]\npatchesStrategicMerge: [p.yaml]\n"), link: "apps/p.yaml", want: build.ErrInvalid, says: "apps/kustomization.yaml: patchesStrategicMerge: invalid manifest: apps/p.yaml " + says},
		"a generator's file":      {files: files("configMapGenerator: [{name: x, files: [k=x.txt]}]\n"), link: "apps/x.txt", want: build.ErrInvalid, says: "apps/kustomization.yaml: configMapGenerator or secretGenerator: invalid manifest: apps/x.txt " + says},
		"a generator's variables": {files: files("configMapGenerator: [{name: x, envs: [x.env]}]\n"), link: "apps/x.env", want: build.ErrInvalid, says: "apps/kustomization.yaml: configMapGenerator or secretGenerator: invalid manifest: apps/x.env " + says},
		"the kustomization":       {files: map[string]string{"apps/a.yaml": configMap("a")}, link: "apps/kustomization.yaml", want: build.ErrInvalid, says: "apps/kustomization.yaml: invalid manifest: it " + says},
		"the path":                {files: files("resources: [a.yaml]\n"), path: "./current", link: "current", want: build.ErrPath, says: `spec.path "./current": path not found: current is a symbolic link, which is not followed: name the folder itself`},
		"on the way of the path":  {files: files("resources: [a.yaml]\n"), path: "./current/apps", link: "current", want: build.ErrPath, says: `spec.path "./current/apps": path not found: current is a symbolic link, which is not followed: name the folder itself`},
	} {
		t.Run(name, func(t *testing.T) {
			in := build.Input{Files: map[string][]byte{}, Path: tc.path, Links: []string{tc.link}}
			if in.Path == "" {
				in.Path = "apps"
			}
			for at, text := range tc.files {
				in.Files[at] = []byte(text)
			}
			objects, err := build.New(build.Limits{}).Build(t.Context(), in)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !errors.Is(err, tc.want) || text != tc.says || err == nil && len(objects) != 1 {
				t.Errorf("%d objects, %q\nwant %q", len(objects), text, tc.says)
			}
			tree := build.NewTree(in.Files).WithLinks(in.Links)
			in.Files, in.Links = nil, nil
			if _, _, again := build.New(build.Limits{}).BuildFrom(t.Context(), tree, in); (again == nil) != (err == nil) || again != nil && again.Error() != text {
				t.Errorf("from a Tree: %v", again)
			}
		})
	}
}
