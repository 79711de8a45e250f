package builder

import (
	"fmt"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/sources/build"
)

// TestWhichFolderIsMeant: the error for a path that is not in the source names the folder that is probably meant.
func TestWhichFolderIsMeant(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"apps/web/prod/a.yaml", "apps/web/stage/a.yaml", "apps/db/a.yaml", "clusters/east/a.yaml", "stages/stage-1/a.yaml", "README.md"} {
		files[name] = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n")
	}
	for n := range 2 * mostFolders {
		files[fmt.Sprintf("many/%04d/a.yaml", n)] = nil
	}
	tree := build.NewTree(files)
	for path, want := range map[string]string{
		"./aps/web/prod":      "./apps/web/prod",
		"apps/web/prd":        "./apps/web/prod",
		"./aps/wep/prood/":    "./apps/web/prod",
		"/Apps/web/prod":      "./apps/web/prod",
		"web/stage":           "./apps/web/stage",
		"east":                "./clusters/east",
		"stages/stage-2":      "",
		"stages/stge-1":       "./stages/stage-1",
		"production":          "",
		"apps/web/canary":     "",
		"apps/README.md":      "",
		"../apps/wep":         "",
		"many/absent":         "",
		"a/b/c/d/e/f/g/h/i/j": "",
	} {
		ks := &kustomizev1.Kustomization{}
		ks.Spec.Path = path
		_, err := FromFiles(t.Context(), build.New(build.Limits{}), tree, Input{Kustomization: ks})
		hinted := ""
		if want != "" {
			hinted = " (did you mean " + want + "?)"
		}
		if got := meant(tree, path); got != hinted {
			t.Errorf("%s: got %q, want %q", path, got, hinted)
		}
		if err == nil || want != "" && err.Error() != fmt.Sprintf("spec.path %q: path not found in the source, which has apps, clusters, many, stages%s", path, hinted) {
			t.Errorf("%s: built with %v", path, err)
		}
	}
}

// TestAPathInASubmodule: a folder that the repository has, and the artifact does not, is told as such.
func TestAPathInASubmodule(t *testing.T) {
	tree := build.NewTree(map[string][]byte{"apps/web/a.yaml": nil})
	for path, want := range map[string]string{
		"./vendor/base/deploy": "; vendor/base is a submodule, whose files are fetched with spec.recurseSubmodules of the GitRepository alone",
		"vendor/base":          "; vendor/base is a submodule, whose files are fetched with spec.recurseSubmodules of the GitRepository alone",
		"vendor/based":         "",
		"vendor":               "",
	} {
		ks := &kustomizev1.Kustomization{}
		ks.Spec.Path = path
		_, err := FromFiles(t.Context(), build.New(build.Limits{}), tree, Input{Kustomization: ks, LeftOut: `["lib","vendor/base"]`})
		if said := fmt.Sprintf("spec.path %q: path not found in the source, which has apps%s", path, want); err == nil || err.Error() != said {
			t.Errorf("%v, want %s", err, said)
		}
	}
}
