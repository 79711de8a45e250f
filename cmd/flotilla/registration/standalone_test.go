package registration

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A token is good for once: it is not used before there is a place for what it gives.
func TestAPlaceIsTakenBeforeTheTokenIsUsed(t *testing.T) {
	cases := map[string]struct {
		before func(t *testing.T, dir string) (standalone string)
		asked  bool
		want   string // in the error
	}{
		"a folder that cannot be made": {func(t *testing.T, dir string) string {
			writeFile(t, filepath.Join(dir, "file"))
			return filepath.Join(dir, "file", "agent")
		}, false, "not a directory"},
		"a folder that is a file": {func(t *testing.T, dir string) string {
			writeFile(t, filepath.Join(dir, "file"))
			return filepath.Join(dir, "file")
		}, false, "not a directory"},
		"a file that is a folder": {func(t *testing.T, dir string) string {
			if err := os.Mkdir(filepath.Join(dir, "karmada-kubeconfig"), 0o700); err != nil {
				t.Fatal(err)
			}
			return dir
		}, false, "karmada-kubeconfig is a folder"},
		"a folder that another call writes to": {func(t *testing.T, dir string) string {
			other, err := takePlace(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(other.free)
			return dir
		}, false, "another flotilla register writes there"},
		"a folder that is made": {func(_ *testing.T, dir string) string { return filepath.Join(dir, "of", "agent") }, true, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, enough := context.WithCancel(t.Context())
			defer enough()
			var asked atomic.Int64
			hub := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				enough()
				w.WriteHeader(http.StatusForbidden)
			}))
			defer hub.Close()
			member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				answer := map[string]string{
					"/api":                           `{"kind":"APIVersions","versions":["v1"]}`,
					"/apis":                          `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
					"/api/v1":                        `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","verbs":["get"]}]}`,
					"/api/v1/namespaces/kube-system": `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"9a3c"}}`,
				}[r.URL.Path]
				_, _ = io.WriteString(w, answer)
			}))
			defer member.Close()
			dir := t.TempDir()
			folder := tc.before(t, dir)

			cmd := newRegister()
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			cmd.SilenceUsage = true
			cmd.SetArgs([]string{
				strings.TrimPrefix(hub.URL, "https://"), "--token", "abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification",
				"--discovery-timeout", "1m", "--cluster-name", "north", "--kubeconfig", kubeconfigOf(t, member.URL), "--standalone", folder,
			})
			err := cmd.ExecuteContext(ctx)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it says %v, want %q", err, tc.want)
			}
			if got := asked.Load() > 0; got != tc.asked {
				t.Errorf("the control plane was asked: %v, want %v", got, tc.asked)
			}
			if drafts, _ := filepath.Glob(filepath.Join(folder, ".karmada-kubeconfig-*")); len(drafts) > 0 && !strings.Contains(name, "another call") {
				t.Errorf("%v are left", drafts)
			}
		})
	}
}

func TestAPlaceKeepsWhatIsWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "agent")
	for _, content := range []string{strings.Repeat("a", 2*reservedBytes), "short", "other"} { // it may be written again
		p, err := takePlace(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.keep([]byte(content)); err != nil {
			t.Fatal(err)
		}
		p.free()
		got, err := os.ReadFile(standaloneFile(folder))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(content, string(got)); diff != "" {
			t.Errorf("content (-want +got):\n%s", diff)
		}
		is, err := os.Stat(standaloneFile(folder))
		if err != nil {
			t.Fatal(err)
		}
		if is.Mode().Perm() != 0o600 {
			t.Errorf("it may be read by %v", is.Mode().Perm())
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func kubeconfigOf(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: north\nclusters: [{name: north, cluster: {server: '" + address +
		"'}}]\ncontexts: [{name: north, context: {cluster: north, user: north}}]\nusers: [{name: north, user: {token: secret}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
