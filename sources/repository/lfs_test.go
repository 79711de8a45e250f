package repository_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// withLFS returns the URL of the repository behind a server that keeps content
// for Git LFS; asked counts the questions for it.
func withLFS(b *bench, asked *int, contents ...string) string {
	b.t.Helper()
	to, err := url.Parse(b.git.URL("app"))
	if err != nil {
		b.t.Fatal(err)
	}
	byOID := map[string]string{}
	for _, content := range contents {
		byOID[oidOf(content)] = content
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch oid, isContent := strings.CutPrefix(r.URL.Path, "/content/"); {
		case isContent:
			_, _ = w.Write([]byte(byOID[oid]))
		case strings.HasSuffix(r.URL.Path, "/info/lfs/objects/batch"):
			*asked++
			var out []string
			for oid := range byOID {
				out = append(out, fmt.Sprintf(`{"oid":%q,"actions":{"download":{"href":%q}}}`, oid, s.URL+"/content/"+oid))
			}
			_, _ = w.Write([]byte(`{"objects":[` + strings.Join(out, ",") + `]}`))
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	b.t.Cleanup(s.Close)
	return s.URL + "/app.git"
}

func oidOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func pointerTo(content string) string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oidOf(content), len(content))
}

// TestLFS walks through the life of a repository with files that Git LFS keeps.
func TestLFS(t *testing.T) {
	const big, other = "kind: ConfigMap # and so on\n", "kind: Secret\n"
	b := newBench(t, repository.Options{Limits: artifact.Limits{Unpacked: 1000}})
	asked := 0
	at := withLFS(b, &asked, big, other)
	b.commit("one", map[string]string{"app.yaml": "a: 1", "big.yaml": pointerTo(big), "docs/other.yaml": pointerTo(other)})
	b.holds("base", map[string]string{"theirs.yaml": pointerTo(other)})
	b.create(func(o *sourcev1.GitRepository) {
		o.Spec.URL = at
		o.Spec.Include = []sourcev1.GitRepositoryInclude{include("base", "", "")}
	})
	annotate := func(value string) func() {
		return func() {
			b.update(func(o *sourcev1.GitRepository) { o.Annotations = map[string]string{"gitops.flotilla.io/lfs": value} })
		}
	}
	for _, step := range []struct {
		what       string
		change     func()
		big, other string
		says       string
		wantAsked  int
	}{
		{what: "it is not asked for", change: func() {}, big: pointerTo(big), other: pointerTo(other)},
		{what: "it is", change: annotate("true"), big: big, other: other, wantAsked: 1},
		{what: "of what is excluded nothing is fetched", change: func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.Ignore = ptr.To("docs/") }) }, big: big, wantAsked: 1},
		{what: "nothing is left", change: func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.Ignore = ptr.To("docs/\nbig.yaml") }) }},
		{what: "it is too large", change: func() {
			b.update(func(o *sourcev1.GitRepository) { o.Spec.Ignore = nil })
			b.commit("two", map[string]string{"huge.yaml": strings.Replace(pointerTo(big), "size ", "size 9", 1)})
		}, says: "more than 1000 bytes: too large"},
		{what: "the server has something else", change: func() { b.commit("three", map[string]string{"huge.yaml": pointerTo("nowhere")}) }, says: "unusable Git LFS: the server does not have it", wantAsked: 1},
		{what: "it is not asked for any more", change: annotate("false"), big: pointerTo(big), other: pointerTo(other)},
	} {
		t.Run(step.what, func(t *testing.T) {
			step.change()
			asked = 0
			if _, err, _, _ := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			got := b.composed()
			if step.says != "" {
				if got.Reason != "GitOperationFailed" || !strings.HasPrefix(got.Says, "Git LFS files of main@sha1:") || !strings.Contains(got.Says, step.says) || asked != step.wantAsked {
					t.Errorf("%+v, with %d questions", got, asked)
				}
				return
			}
			files, err := b.store.Open(t.Context(), b.object().Status.Artifact.Digest)
			if err != nil || got.Says != "" {
				t.Fatalf("%v, %s", err, got.Says)
			}
			if string(files["big.yaml"].Data) != step.big || string(files["docs/other.yaml"].Data) != step.other || string(files["base/theirs.yaml"].Data) != pointerTo(other) || asked != step.wantAsked {
				t.Errorf("with %d questions, big %q, other %q, included %q", asked, files["big.yaml"].Data, files["docs/other.yaml"].Data, files["base/theirs.yaml"].Data)
			}
			if _, _, writes, _ := b.reconcile(); writes != 0 || asked != step.wantAsked {
				t.Errorf("the next run wrote %d times, and asked %d times", writes, asked)
			}
		})
	}
}
