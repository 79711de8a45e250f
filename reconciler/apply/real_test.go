package apply_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testdata returns the files of a published application; it skips the test
// if they are not there.
func testdata(t testing.TB, name string) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "testdata", name)
	if _, err := os.Stat(root); err != nil {
		t.Skipf("%s is not at hand: %v", name, err)
	}
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPublishedApplications(t *testing.T) {
	cases := map[string]struct {
		path    string
		objects int
	}{
		"online-boutique": {path: "kustomize", objects: 35},
		"podinfo":         {path: "kustomize", objects: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			revision := w.commit(testdata(t, name))
			w.kustomization("app", func(spec *kustomizev1.KustomizationSpec) {
				spec.Path, spec.TargetNamespace = tc.path, w.namespace
			})
			ks := w.ready("app", revision)
			if got := len(inventoryOf(ks)); got < tc.objects {
				t.Errorf("%d objects: %v", got, inventoryOf(ks))
			}
		})
	}
}

// TestWritesPerCommit: a commit that adds objects writes each of them once, and the
// Kustomization twice; one that changes an object writes that and the Kustomization,
// once each.
func TestWritesPerCommit(t *testing.T) {
	const objects = 100
	w := newQuietWorld(t)
	w.kustomization("web")
	deployments := func(replicas int) map[string]string {
		files := map[string]string{}
		for i := range objects {
			text := fmt.Sprintf(deployment, 1, "web")
			if i == 0 {
				text = fmt.Sprintf(deployment, replicas, "web")
			}
			files[fmt.Sprintf("app/web-%d.yaml", i)] = strings.ReplaceAll(text, "name: web,", fmt.Sprintf("name: web-%d,", i))
		}
		return files
	}
	w.awaitReason("web", "", meta.ArtifactFailedReason)
	before := w.QuietRevision(t)
	w.ready("web", w.commit(deployments(1)))
	if got := w.QuietRevision(t) - before; got != objects+3 {
		t.Errorf("%d writes for %d new objects, want %d: each of them, the artifact, what is owned, and the outcome", got, objects, objects+3)
	}
	before = w.QuietRevision(t)
	w.ready("web", w.commit(deployments(2)))
	if got := w.QuietRevision(t) - before; got != 3 {
		t.Errorf("%d writes for one changed object of %d, want 3: the artifact, the object, the outcome", got, objects)
	}
	var list unstructured.UnstructuredList
	list.SetAPIVersion("apps/v1")
	list.SetKind("DeploymentList")
	if err := w.Hub.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != objects {
		t.Errorf("%d Deployments, want %d", len(list.Items), objects)
	}
}
