package submodule_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/submodule"
)

// server has real repositories, each with a clone.
type server struct {
	*gitserver.Server
	t      *testing.T
	root   string
	clones string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, root: t.TempDir(), clones: t.TempDir()}
	var err error
	if s.Server, err = gitserver.Start(t.Context(), s.root, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *server) git(name string, args ...string) string {
	s.t.Helper()
	out, err := gitserver.Git(s.t.Context(), filepath.Join(s.clones, name), args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// commit commits and pushes files, and submodules by path, and returns the commit. A
// submodule is a commit and a URL; without a URL it has no entry.
func (s *server) commit(name string, files map[string]string, submodules map[string][2]string) string {
	s.t.Helper()
	clone := filepath.Join(s.clones, name)
	if _, err := os.Stat(clone); err != nil {
		if err := s.Create(s.t.Context(), name); err != nil {
			s.t.Fatal(err)
		}
		if _, err := gitserver.Git(s.t.Context(), s.root, "clone", "--quiet", s.URL(name), clone); err != nil {
			s.t.Fatal(err)
		}
		s.git(name, "checkout", "--quiet", "-b", "main")
	}
	write := func(at, text string) {
		at = filepath.Join(clone, at)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	for at, text := range files {
		write(at, text)
	}
	var modules strings.Builder
	for at, sub := range submodules {
		if sub[1] != "" {
			fmt.Fprintf(&modules, "[submodule %q]\n\tpath = %s\n\turl = %s\n", at, at, sub[1])
		}
	}
	if modules.Len() > 0 {
		write(".gitmodules", modules.String())
	}
	s.git(name, "add", "-A")
	for at, sub := range submodules {
		s.git(name, "update-index", "--add", "--cacheinfo", "160000,"+sub[0]+","+at)
	}
	s.git(name, "commit", "--quiet", "--allow-empty", "-m", "x")
	s.git(name, "push", "--quiet", "origin", "HEAD:main")
	return s.git(name, "rev-parse", "HEAD")
}

var loopback = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// files fetches a repository with its submodules, and returns the text of each file.
func files(t *testing.T, from submodule.Source, commit string, directories ...string) (map[string]string, error) {
	t.Helper()
	from.Options.TempDir = t.TempDir()
	if from.Options.Egress.Networks == nil {
		from.Options.Egress = loopback
	}
	remote, err := git.NewRemote(from.URL, from.Credentials, from.Options)
	if err != nil {
		t.Fatal(err)
	}
	c, err := remote.Resolve(t.Context(), git.Ref{Commit: commit})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := remote.Fetch(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	whole, err := submodule.Fetch(t.Context(), tree, from, directories)
	if err != nil {
		return nil, err
	}
	defer whole.Close()
	out := map[string]string{}
	err = fs.WalkDir(whole.Tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type() == fs.ModeIrregular:
			out[name] = "(submodule)"
		case d.Type().IsRegular() && d.Name() != ".gitmodules":
			text, err := fs.ReadFile(whole.Tree, name)
			if err != nil {
				return err
			}
			out[name] = string(text)
		}
		return nil
	})
	return out, err
}

// TestFetch is about the files of submodules.
func TestFetch(t *testing.T) {
	s := newServer(t)
	leaf := s.commit("leaf", map[string]string{"leaf.yaml": "l"}, nil)
	old := s.commit("lib", map[string]string{"a/lib.yaml": "old"}, map[string][2]string{"vendor/leaf": {leaf, "../leaf.git"}})
	s.commit("lib", map[string]string{"a/lib.yaml": "new"}, nil)
	app := s.commit("app", map[string]string{"app.yaml": "a", "libs/own.yaml": "o"}, map[string][2]string{
		"libs/one": {old, "../lib.git"}, "two": {old, s.URL("lib")}, "z": {leaf, "../leaf.git"},
	})
	for name, tc := range map[string]struct {
		directories []string
		want        map[string]string
	}{
		"all of them, in the commits that are named": {nil, map[string]string{
			"app.yaml": "a", "libs/own.yaml": "o", "libs/one/a/lib.yaml": "old", "libs/one/vendor/leaf/leaf.yaml": "l",
			"two/a/lib.yaml": "old", "two/vendor/leaf/leaf.yaml": "l", "z/leaf.yaml": "l",
		}},
		"those of a folder": {[]string{"libs"}, map[string]string{
			"app.yaml": "a", "libs/own.yaml": "o", "libs/one/a/lib.yaml": "old", "libs/one/vendor/leaf/leaf.yaml": "l", "two": "(submodule)", "z": "(submodule)",
		}},
		"for a folder within one": {[]string{"/two/a/"}, map[string]string{
			"app.yaml": "a", "libs/own.yaml": "o", "libs/one": "(submodule)", "two/a/lib.yaml": "old", "two/vendor/leaf": "(submodule)", "z": "(submodule)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := files(t, submodule.Source{URL: s.URL("app")}, app, tc.directories...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatCannotBeHad: one error names the submodule and the URL.
func TestWhatCannotBeHad(t *testing.T) {
	s := newServer(t)
	lib := s.commit("lib", map[string]string{"lib.yaml": "l"}, nil)
	ring := s.commit("ring", map[string]string{"x": "0"}, nil)
	for range 4 {
		ring = s.commit("ring", map[string]string{"x": ring}, map[string][2]string{"in": {ring, "../ring.git"}})
	}
	many := map[string][2]string{}
	for n := range 21 {
		many[fmt.Sprintf("m%02d", n)] = [2]string{lib, "../lib.git"}
	}
	gone := strings.Repeat("1", 40)
	host := strings.TrimSuffix(strings.TrimPrefix(s.URL("app"), "http://"), "/app.git")
	for name, tc := range map[string]struct {
		submodules map[string][2]string
		files      map[string]string
		is         error
		says       string
	}{
		"a commit that was never pushed": {
			map[string][2]string{"libs/a": {gone, "../lib.git"}}, nil, git.ErrRefNotFound,
			"submodule libs/a (http://" + host + "/lib.git): ref not found: the repository does not hand out the commit " + gone + ": push it there",
		},
		"a repository that is gone": {map[string][2]string{"libs/a": {lib, "../gone.git"}}, nil, git.ErrRepositoryNotFound, "submodule libs/a (http://" + host + "/gone.git): fetch sha1:" + lib[:8] + " of http://" + host + "/gone.git: repository not found (HTTP 404): check .gitmodules, and"},
		"no entry":                  {map[string][2]string{"a": {lib, "../lib.git"}, "b": {lib, ""}}, nil, submodule.ErrUnusable, "unusable submodule: b has no entry in .gitmodules"},
		"no .gitmodules":            {map[string][2]string{"b": {lib, ""}}, nil, submodule.ErrUnusable, "unusable submodule: b is one, and there is no .gitmodules that says where it comes from: git submodule add"},
		"a file":                    {map[string][2]string{"a": {lib, "file://" + s.root + "/lib.git"}}, nil, submodule.ErrUnusable, `unusable submodule: a: "file://`},
		"a folder":                  {map[string][2]string{"a": {lib, s.root + "/lib.git"}}, nil, submodule.ErrUnusable, "unusable submodule: a: "},
		"a program":                 {map[string][2]string{"a": {lib, "ext::sh -c id"}}, nil, submodule.ErrUnusable, "unusable submodule: a: "},
		"SSH without a key for it":  {map[string][2]string{"a": {lib, "git@127.0.0.1:lib.git"}}, nil, git.ErrCredentials, "submodule a (ssh://***@127.0.0.1/lib.git): "},
		"where no source may be":    {map[string][2]string{"a": {lib, "http://169.254.169.254/lib.git"}}, nil, egress.ErrNotAllowed, "submodule a (http://169.254.169.254/lib.git): "},
		"too deep":                  {map[string][2]string{"a": {ring, "../ring.git"}}, nil, submodule.ErrUnusable, "unusable submodule: a/in/in/in is more than 3 submodules deep"},
		"too many":                  {many, nil, submodule.ErrUnusable, "unusable submodule: m20 is one more than 20, which are allowed"},
		"two URLs": {
			map[string][2]string{"a": {lib, ""}}, map[string]string{".gitmodules": "[submodule \"a\"]\npath = a\nurl = ../lib.git\n[submodule \"b\"]\npath = a\nurl = ../x.git\n"},
			submodule.ErrUnusable, "unusable submodule: .gitmodules gives two URLs for a",
		},
		"not a configuration": {map[string][2]string{"a": {lib, ""}}, map[string]string{".gitmodules": "[[["}, submodule.ErrUnusable, "unusable submodule: .gitmodules is not in the format"},
		"far too long":        {map[string][2]string{"a": {lib, ""}}, map[string]string{".gitmodules": strings.Repeat("# x\n", 1<<15)}, submodule.ErrUnusable, "unusable submodule: .gitmodules has more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			app := s.commit(strings.ReplaceAll(name, " ", "-"), tc.files, tc.submodules)
			_, err := files(t, submodule.Source{URL: s.URL(strings.ReplaceAll(name, " ", "-"))}, app)
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.HasPrefix(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v\nwant %q, which is %v", err, tc.says, tc.is)
			}
		})
	}
}

// front is a proxy to the server that notes whether credentials came.
func front(t *testing.T, s *server, came *atomic.Bool) *httptest.Server {
	t.Helper()
	to, err := url.Parse(s.URL("x"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	out := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			came.Store(true)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(out.Close)
	return out
}

// TestCredentialsStayWithTheirHost: another port is another host.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	s := newServer(t)
	var own, other atomic.Bool
	mine, theirs := front(t, s, &own), front(t, s, &other)
	lib := s.commit("lib", map[string]string{"lib.yaml": "l"}, nil)
	app := s.commit("app", nil, map[string][2]string{"a": {lib, "../lib.git"}, "b": {lib, theirs.URL + "/lib.git"}})
	for name, from := range map[string]submodule.Source{
		"of a Secret": {URL: mine.URL + "/app.git", Credentials: git.Credentials{Username: "bot", Password: "CANARY-51ce"}},
		"of the URL":  {URL: strings.Replace(mine.URL, "://", "://bot:CANARY-51ce@", 1) + "/app.git"},
	} {
		t.Run(name, func(t *testing.T) {
			own.Store(false)
			got, err := files(t, from, app)
			if diff := cmp.Diff(map[string]string{"a/lib.yaml": "l", "b/lib.yaml": "l"}, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if !own.Load() || other.Load() {
				t.Errorf("credentials came to their own host: %t, to the other: %t; want true, false", own.Load(), other.Load())
			}
		})
	}
}

// TestWhatCredentialsAreNotFor: what a submodule elsewhere lacks, no Secret gives it.
func TestWhatCredentialsAreNotFor(t *testing.T) {
	s := newServer(t)
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusUnauthorized) }))
	t.Cleanup(closed.Close)
	lib := s.commit("lib", map[string]string{"lib.yaml": "l"}, nil)
	at, err := url.Parse(s.URL("x"))
	if err != nil {
		t.Fatal(err)
	}
	alone := "; the credentials of spec.secretRef are for http://" + at.Host + " alone: write a relative URL into .gitmodules, or one with https:// that everybody may read"
	for name, tc := range map[string]struct {
		url, says string
		is        error
	}{
		"one by ssh":               {"ssh://git@" + at.Host + "/lib.git", "ssh takes a key" + alone, git.ErrCredentials},
		"one that wants a login":   {closed.URL + "/lib.git", alone, git.ErrUnauthorized},
		"one as people clone them": {"git@git.test:shop/lib.git", "ssh takes a key" + alone, git.ErrCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			app := s.commit("app", nil, map[string][2]string{"a": {lib, tc.url}})
			_, err := files(t, submodule.Source{URL: s.URL("app")}, app)
			if !errors.Is(err, tc.is) || !strings.HasSuffix(err.Error(), tc.says) {
				t.Errorf("%v\nwant %q, which is %v", err, tc.says, tc.is)
			}
		})
	}
}

// TestAPublicRepositoryLeadsNowhereElse: its submodules are at public addresses,
// also where an administrator allows others.
func TestAPublicRepositoryLeadsNowhereElse(t *testing.T) {
	s := newServer(t)
	lib := s.commit("lib", map[string]string{"lib.yaml": "l"}, nil)
	inward := s.commit("inward", nil, map[string][2]string{"a": {lib, s.URL("lib")}})
	beside := s.commit("beside", nil, map[string][2]string{"a": {lib, "../lib.git"}})
	at, err := url.Parse(s.URL("lib"))
	if err != nil {
		t.Fatal(err)
	}
	reach := egress.Dialer{
		Networks: loopback.Networks,
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, strings.Replace(address, "93.184.216.34:80", at.Host, 1))
		},
	}
	if got, err := files(t, submodule.Source{URL: "http://git.example/beside.git", Options: git.Options{Egress: reach}}, beside); err != nil || got["a/lib.yaml"] != "l" {
		t.Errorf("a submodule beside it: %v, %v", got, err)
	}
	if got, err := files(t, submodule.Source{URL: "http://git.example/inward.git", Options: git.Options{Egress: reach}}, inward); !errors.Is(err, egress.ErrNotAllowed) {
		t.Errorf("a submodule in our network: %v, %v", got, err)
	}
	kept := git.NewKept(git.KeptOptions{})
	if _, err := files(t, submodule.Source{URL: s.URL("lib"), Options: git.Options{Egress: reach, Kept: kept}}, lib); err != nil { // as another repository
		t.Fatal(err)
	}
	if got, err := files(t, submodule.Source{URL: "http://git.example/inward.git", Options: git.Options{Egress: reach, Kept: kept}}, inward); !errors.Is(err, egress.ErrNotAllowed) {
		t.Errorf("a submodule in our network, to which there is a connection: %v, %v", got, err)
	}
}
