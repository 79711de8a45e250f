package repository_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/repository"
)

// submodule pushes a commit with a submodule that is at a commit of the repository itself.
func (b *bench) submodule(commit string) {
	b.t.Helper()
	text := "[submodule \"lib\"]\n\tpath = lib\n\turl = ../app.git\n"
	if err := os.WriteFile(filepath.Join(b.clone, ".gitmodules"), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.run("add", "-A")
	b.run("update-index", "--add", "--cacheinfo", "160000,"+commit+",lib")
	b.run("commit", "--quiet", "-m", "with a submodule")
	b.run("push", "--quiet", "origin", "HEAD")
}

// TestSubmodules walks through the life of a repository with a submodule.
func TestSubmodules(t *testing.T) {
	b := newBench(t, repository.Options{})
	first := b.commit("one", map[string]string{"app.yaml": "a: 1", "deploy/x.yaml": "x: 1"})
	b.submodule(first)
	b.create(nil)
	gone := strings.Repeat("1", 40)
	for _, step := range []struct {
		what   string
		change func()
		want   composed
	}{
		{"they are not asked for", func() {}, composed{Reason: "Succeeded", Files: "app.yaml deploy/x.yaml", MayBuild: true}},
		{"they are", func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.RecurseSubmodules = true }) }, composed{Reason: "Succeeded", Files: "app.yaml deploy/x.yaml lib/app.yaml lib/deploy/x.yaml", MayBuild: true}},
		{"a folder of one", func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.SparseCheckout = []string{"lib/deploy"} }) }, composed{Reason: "Succeeded", Files: "lib/deploy/x.yaml", MayBuild: true}},
		{"one that cannot be had", func() { b.submodule(gone) }, composed{Reason: "GitOperationFailed", Says: "submodules of REVISION: submodule lib (" + b.git.URL("app") + "): ", Files: "lib/deploy/x.yaml", MayBuild: true}},
		{"they are not asked for any more", func() {
			b.update(func(o *sourcev1.GitRepository) { o.Spec.RecurseSubmodules, o.Spec.SparseCheckout = false, nil })
		}, composed{Reason: "Succeeded", Files: "app.yaml deploy/x.yaml", MayBuild: true}},
	} {
		t.Run(step.what, func(t *testing.T) {
			step.change()
			_, err, _, _ := b.reconcile()
			step.want.Says = strings.Replace(step.want.Says, "REVISION", "main@sha1:"+b.run("rev-parse", "HEAD")[:8], 1)
			got := b.composed()
			if step.want.Says != "" && strings.HasPrefix(got.Says, step.want.Says) {
				got.Says = step.want.Says
			}
			if diff := cmp.Diff(step.want, got); diff != "" || err != nil && step.want.Says == "" {
				t.Fatalf("%v (-want +got):\n%s", err, diff)
			}
			if _, _, writes, _ := b.reconcile(); writes != 0 {
				t.Errorf("the next run wrote %d times: %s", writes, b.composed().Says)
			}
			recorded := ""
			if strings.Contains(step.want.Files, "lib/") {
				recorded = fmt.Sprintf(`[{"path":"lib","url":%q,"commit":%q}]`, b.git.URL("app"), first)
			}
			if diff := cmp.Diff(recorded, b.object().Status.Artifact.Metadata["gitops.flotilla.io/submodules"]); diff != "" {
				t.Errorf("what is recorded of submodules (-want +got):\n%s", diff)
			}
			left := ""
			if !b.object().Spec.RecurseSubmodules {
				left = `["lib"]`
			}
			if got := b.object().Status.Artifact.Metadata["gitops.flotilla.io/submodules-left-out"]; got != left {
				t.Errorf("submodules that are left out: %q, want %q", got, left)
			}
			if status := b.object().Status; step.want.Says == "" && status.ObservedRecurseSubmodules != b.object().Spec.RecurseSubmodules {
				t.Errorf("observedRecurseSubmodules: %t", status.ObservedRecurseSubmodules)
			}
		})
	}
}

// TestSubmodulesAndLFSByAProxy: what a repository leads to is reached by its proxy, too.
func TestSubmodulesAndLFSByAProxy(t *testing.T) {
	b := newBench(t, repository.Options{})
	var passed []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed = append(passed, r.URL.Path)
		r.RequestURI = ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(proxy.Close)
	b.secret("proxy", map[string]string{"address": proxy.URL})
	asked := 0
	at := withLFS(b, &asked, "big")
	first := b.commit("one", map[string]string{"big.yaml": pointerTo("big")})
	b.submodule(first)
	b.create(func(o *sourcev1.GitRepository) {
		o.Annotations = map[string]string{"gitops.flotilla.io/lfs": "true"}
		o.Spec.URL, o.Spec.RecurseSubmodules = at, true
		o.Spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
	})
	b.mustReconcile()
	counts := map[string]int{}
	for _, path := range passed {
		if strings.HasPrefix(path, "/content/") {
			path = "content"
		}
		counts[path] += 1
	}
	if asked != 1 || counts["content"] != 1 || counts["/app.git/info/lfs/objects/batch"] != 1 || counts["/app.git/git-upload-pack"] < 2 {
		t.Errorf("by the proxy went %v", counts)
	}
}
