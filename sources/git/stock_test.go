package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/objects"
)

// many returns a thousand files of 1 KiB that do not compress.
func many(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("apps/%02d/%03d.yaml", i%20, i)] = noise(t, 1<<10)
	}
	return files
}

// stocked returns what keeps objects in a folder.
func stocked(dir string) *git.Kept {
	return git.NewKept(git.KeptOptions{Objects: objects.New(objects.Options{Dir: dir})})
}

// content returns the content of all files of a tree that can be read.
func content(t *testing.T, tree *git.Tree) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if text, err := fs.ReadFile(tree, name); err == nil {
			out[name] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read fetches what a ref points at.
func read(t *testing.T, r *git.Remote, ref git.Ref) (map[string]string, error) {
	t.Helper()
	commit, err := r.Resolve(t.Context(), ref)
	if err != nil {
		return nil, err
	}
	tree, err := r.Fetch(t.Context(), commit)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	return content(t, tree), nil
}

func (f *fixture) filters(allow bool) {
	f.t.Helper()
	if _, err := gitserver.Git(f.t.Context(), filepath.Join(f.root, "app.git"), "config", "uploadpack.allowFilter", fmt.Sprint(allow)); err != nil {
		f.t.Fatal(err)
	}
}

// TestAChangeCostsWhatHasChanged counts the bytes of a changed file among a thousand, by servers of all versions.
func TestAChangeCostsWhatHasChanged(t *testing.T) {
	f := newFixture(t)
	files := many(t)
	f.commit("one", files)
	f.commit("more", map[string]string{"large": noise(t, 1<<20)}) // a history that is larger than the commit
	f.commit("last", map[string]string{"large": "small"})
	files["large"] = "small"
	sshd := startOpenSSH(t, "AcceptEnv GIT_PROTOCOL")
	path := filepath.Join(f.root, "app.git")
	n := 0
	for _, tc := range []struct {
		name    string
		url     string
		filters bool
		most    int64
	}{
		{"http, with filters", f.url, true, 16 << 10},
		{"http, without", f.url, false, 16 << 10},
		{"openssh", sshd.url(path), false, 32 << 10},
		{"http, version 0", f.oldServer(), false, 64 << 20}, // it is read all the same
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.url == "" {
				t.Skip("there is no sshd: install openssh-server")
			}
			f.filters(tc.filters)
			count := &wireCount{}
			kept := stocked(t.TempDir())
			remote := func() *git.Remote {
				return f.remote(tc.url, credentials(t, tc.url, sshd.secretFor(tc.url)), git.Options{Egress: count.dialer(), Kept: kept})
			}
			whole := count.since(func() {
				if got, err := read(t, remote(), git.Ref{Branch: "main"}); err != nil || !maps.Equal(got, files) {
					t.Fatalf("read %d files, %v; want %d", len(got), err, len(files))
				}
			})
			var change int64
			for range 2 {
				n++
				files["n"], files["apps/07/007.yaml"] = fmt.Sprint(n), noise(t, 1<<10)
				f.commit("change", map[string]string{"n": files["n"], "apps/07/007.yaml": files["apps/07/007.yaml"]})
				change = count.since(func() {
					got, err := read(t, remote(), git.Ref{Branch: "main"})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(files, got); diff != "" {
						t.Errorf("files after the change (-want +got):\n%s", diff)
					}
				})
			}
			if change > tc.most {
				t.Errorf("a poll and a change take %d bytes, want at most %d", change, tc.most)
			}
			t.Logf("first %d bytes, a change %d", whole, change)
		})
	}
}

// TestWhatComesBack has files that are like each other move, and be as they were some commits ago: a server sends these again, and others
// as deltas of them.
func TestWhatComesBack(t *testing.T) {
	for name, filters := range map[string]bool{"with filters": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.filters(filters)
			random := rand.New(rand.NewPCG(1, 2))
			kept := stocked(t.TempDir())
			alike := []string{noise(t, 300), noise(t, 300), noise(t, 300)}
			for range 25 {
				_ = os.RemoveAll(filepath.Join(f.clone, "apps"))
				files := map[string]string{}
				for i := range 10 {
					files[fmt.Sprintf("apps/%c/%d.yaml", 'a'+random.IntN(4), i)] = alike[i%3] + fmt.Sprintf("\nvalue: %d\n", random.IntN(6))
				}
				f.commit("change", files)
				got, err := read(t, f.remote(f.url, credentials(t, f.url, nil), git.Options{Kept: kept}), git.Ref{Branch: "main"})
				if diff := cmp.Diff(files, got); diff != "" || err != nil {
					t.Fatalf("files (-want +got):\n%s\n%v", diff, err)
				}
			}
		})
	}
}

func (s openSSH) secretFor(url string) map[string]string {
	if strings.HasPrefix(url, "ssh:") {
		return s.secret
	}
	return nil
}

// TestWhatIsKeptIsNotTrusted: whatever happens to the files in which objects are kept, what is read is what the commit has.
func TestWhatIsKeptIsNotTrusted(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a.yaml": "evil\n"})
	elsewhere := t.TempDir()
	if _, err := read(t, f.remote(f.url, git.Credentials{}, git.Options{Kept: stocked(elsewhere)}), git.Ref{Branch: "main"}); err != nil {
		t.Fatal(err)
	}
	_, evil := about(t, elsewhere)
	large := noise(t, 4<<10)
	f.commit("two", map[string]string{"a.yaml": "two\n", "dir/b.yaml": "b\n", "c.txt": large})
	with := func(line []byte, pack string) []byte { return bytes.Join([][]byte{line, []byte(pack)}, []byte("\n")) }
	flipped := func(line, pack []byte, at int) []byte {
		pack = bytes.Clone(pack)
		pack[at%len(pack)] ^= 0x20
		return with(line, string(pack))
	}
	cases := map[string]func(line, pack []byte) []byte{
		"nothing at all":             func([]byte, []byte) []byte { return nil },
		"half of it":                 func(line, pack []byte) []byte { return with(line, string(pack[:len(pack)/2])) },
		"no pack":                    func(line, _ []byte) []byte { return with(line, "") },
		"another line":               func(_, pack []byte) []byte { return with([]byte("something else"), string(pack)) },
		"the pack of another commit": func(line, _ []byte) []byte { return with(line, string(evil)) },
		"a pack without objects": func(line, _ []byte) []byte {
			return with(line, "PACK\x00\x00\x00\x02\x00\x00\x00\x00"+strings.Repeat("\x00", 20))
		},
		"a commit that is nowhere": func(line, pack []byte) []byte {
			return with(append(line[:len(line)-40:len(line)-40], strings.Repeat("ab", 20)...), string(pack))
		},
		"more than the pack": func(line, pack []byte) []byte { return with(line, string(pack)+large) },
		"a pack of too many objects": func(line, pack []byte) []byte {
			return with(line, string(pack[:8])+"\xff\xff\xff\xff"+string(pack[12:]))
		},
	}
	for _, at := range []int{0, 7, 11, 12, 13, 20, 40, 100, 300, 1000, 4000} {
		cases[fmt.Sprintf("byte %d is another", at)] = func(line, pack []byte) []byte { return flipped(line, pack, at) }
	}
	dir, n := t.TempDir(), 0
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			for _, changed := range []bool{false, true} {
				remote := f.remote(f.url, git.Credentials{}, git.Options{Kept: stocked(dir)})
				if _, err := read(t, remote, git.Ref{Branch: "main"}); err != nil {
					t.Fatal(err)
				}
				line, pack := about(t, dir)
				if changed {
					n++
					f.commit("change", map[string]string{"n": fmt.Sprint(n)})
				}
				want := map[string]string{"a.yaml": "two\n", "dir/b.yaml": "b\n", "c.txt": large}
				if n > 0 {
					want["n"] = fmt.Sprint(n)
				}
				if err := os.WriteFile(onlyFile(t, dir), damage(line, pack), 0o600); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					got, err := read(t, remote, git.Ref{Branch: "main"})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("files, changed %t (-want +got):\n%s", changed, diff)
					}
				}
			}
		})
	}
}

// about returns the line and the pack of the one file in a folder.
func about(t *testing.T, dir string) (line, pack []byte) {
	t.Helper()
	whole, err := os.ReadFile(onlyFile(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	line, pack, _ = bytes.Cut(whole, []byte("\n"))
	return line, pack
}

func onlyFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files are kept (%v), want 1", len(files), err)
	}
	return filepath.Join(dir, files[0].Name())
}

// TestWhatIsKeptIsOfOneIdentity: another one's credentials open nothing, and neither do those that count no more.
func TestWhatIsKeptIsOfOneIdentity(t *testing.T) {
	f := newFixture(t)
	tip := f.commit("one", map[string]string{"a.yaml": "secret\n"})
	front := f.front()
	var password atomic.Value
	password.Store(canary)
	var fetches atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, _ := r.BasicAuth(); got != password.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.ContentLength > 0 {
			fetches.Add(1)
		}
		front.ServeHTTP(w, r)
	}))
	defer s.Close()
	url := s.URL + "/app.git"
	dir := t.TempDir()
	opts := git.Options{Kept: stocked(dir), Since: time.Unix(1, 0)}
	owner := credentials(t, url, map[string]string{"username": "bot", "password": canary})
	for range 2 { // the second takes what the first has left
		if got, err := read(t, f.remote(url, owner, opts), git.Ref{Branch: "main"}); err != nil || got["a.yaml"] != "secret\n" {
			t.Fatal(got, err)
		}
	}
	if got := fetches.Load(); got != 2 {
		t.Errorf("%d requests, want one list and one fetch", got)
	}
	for name, cred := range map[string]git.Credentials{
		"nobody": {}, "another password": credentials(t, url, map[string]string{"username": "bot", "password": "wrong"}),
		"another user": credentials(t, url, map[string]string{"username": "bob", "password": "wrong"}),
		"a token":      credentials(t, url, map[string]string{"bearerToken": canary}),
	} {
		for _, ref := range []git.Ref{{Branch: "main"}, {Commit: tip}, {Branch: "main", Commit: tip}} {
			if got, err := read(t, f.remote(url, cred, opts), ref); !errors.Is(err, git.ErrUnauthorized) {
				t.Errorf("%s, %v: read %v, %v", name, ref, got, err)
			}
		}
	}
	password.Store("another")
	if got, err := read(t, f.remote(url, owner, opts), git.Ref{Commit: tip}); !errors.Is(err, git.ErrUnauthorized) {
		t.Errorf("a commit after the password was changed: %v, %v", got, err)
	}
	if name := filepath.Base(onlyFile(t, dir)); strings.Contains(name, canary) {
		t.Errorf("the file is called %s", name)
	}
}

// TestOneRequestForMany: a hundred who look at the same cost one list and one fetch.
func TestOneRequestForMany(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a.yaml": "one\n"})
	kept := stocked(t.TempDir())
	before := f.server.Requests()
	began := time.Now()
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if got, err := read(t, f.remote(f.url, git.Credentials{}, git.Options{Kept: kept, Since: began}), git.Ref{Branch: "main"}); err != nil || got["a.yaml"] != "one\n" {
				t.Errorf("read %v, %v", got, err)
			}
		})
	}
	group.Wait()
	if got := f.server.Requests() - before; got != 3 {
		t.Errorf("%d requests, want the greeting, one list and one fetch", got)
	}
	f.commit("two", map[string]string{"a.yaml": "two\n"})
	if got, err := read(t, f.remote(f.url, git.Credentials{}, git.Options{Kept: kept, Since: time.Now()}), git.Ref{Branch: "main"}); err != nil || got["a.yaml"] != "two\n" {
		t.Errorf("who asks after a change reads %v, %v", got, err)
	}
}

// TestAllWithWhatIsKept reads every ref and selection by what earlier reads have left, in an order that mixes them.
func TestAllWithWhatIsKept(t *testing.T) {
	f := newFixture(t)
	one := f.commit("one", map[string]string{"a/a.yaml": "one\n", "b/b.yaml": "b\n", "b/large": noise(t, 64<<10)})
	f.git("tag", "-a", "v1.0.0", "-m", "first")
	f.git("tag", "-a", "outer", "-m", "outer", "v1.0.0")
	two := f.commit("two", map[string]string{"a/a.yaml": "two\n"})
	f.git("checkout", "--quiet", "-b", "side", one)
	side := f.commit("side", map[string]string{"c/c.yaml": "c\n"})
	f.git("push", "--quiet", "--tags", "origin", "main")
	inA := func(name string) bool { return strings.HasPrefix(name, "a/") }
	type step struct {
		ref    git.Ref
		wanted func(string) bool // nil for all
		commit string
		files  []string
		tagged bool
	}
	all, withC := []string{"a/a.yaml", "b/b.yaml", "b/large"}, []string{"a/a.yaml", "b/b.yaml", "b/large", "c/c.yaml"}
	steps := []step{
		{git.Ref{Branch: "main"}, inA, two, []string{"a/a.yaml"}, false},
		{git.Ref{Branch: "side"}, inA, side, []string{"a/a.yaml"}, false},
		{git.Ref{Tag: "v1.0.0"}, inA, one, []string{"a/a.yaml"}, true},
		{git.Ref{Tag: "outer"}, nil, one, all, true},
		{git.Ref{Branch: "main"}, nil, two, all, false},
		{git.Ref{Branch: "side"}, nil, side, withC, false},
		{git.Ref{Tag: "v1.0.0"}, nil, one, all, true},
		{git.Ref{SemVer: "1.x"}, inA, one, []string{"a/a.yaml"}, true},
		{git.Ref{Commit: one}, nil, one, all, false},
		{git.Ref{Commit: two}, nil, two, all, false},
		{git.Ref{Branch: "main"}, inA, two, []string{"a/a.yaml"}, false},
	}
	for _, filters := range []bool{true, false} {
		t.Run(fmt.Sprintf("filters %t", filters), func(t *testing.T) {
			f.filters(filters)
			dir := t.TempDir()
			for n, s := range append(steps, steps...) {
				remote := f.remote(f.url, git.Credentials{}, git.Options{Kept: stocked(dir)})
				commit, err := remote.Resolve(t.Context(), s.ref)
				if err != nil || commit.Hash != s.commit {
					t.Fatalf("step %d: Resolve = %v, %v", n, commit, err)
				}
				var tree *git.Tree
				if s.wanted == nil {
					tree, err = remote.Fetch(t.Context(), commit)
				} else {
					tree, err = remote.FetchSome(t.Context(), commit, s.wanted)
				}
				if err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				got := content(t, tree)
				for _, name := range s.files {
					if got[name] != f.git("show", s.commit+":"+name)+"\n" && got[name] != f.git("show", s.commit+":"+name) {
						t.Errorf("step %d: %s = %.20q", n, name, got[name])
					}
				}
				if s.wanted == nil && len(got) != len(s.files) {
					t.Errorf("step %d: %d files, want %d", n, len(got), len(s.files))
				}
				if _, err := tree.SignedCommit(); err != nil {
					t.Errorf("step %d: the commit as it was signed: %v", n, err)
				}
				if _, err := tree.SignedTag(); s.tagged != (err == nil) {
					t.Errorf("step %d: the tag: %v", n, err)
				}
				if err := tree.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestWhatHasGrownIsFetchedInWhole: what is put upon what was fetched in whole does not grow for ever.
func TestWhatHasGrownIsFetchedInWhole(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a": noise(t, 12<<20)})
	dir, count, n := t.TempDir(), &wireCount{}, 0
	change := func() int64 {
		n++
		f.commit("change", map[string]string{"b": fmt.Sprint(n)})
		return count.since(func() {
			remote := f.remote(f.url, git.Credentials{}, git.Options{Kept: stocked(dir), Egress: count.dialer()})
			if got, err := read(t, remote, git.Ref{Branch: "main"}); err != nil || got["b"] != fmt.Sprint(n) {
				t.Fatalf("change %d: %v", n, err)
			}
		})
	}
	change()
	line, pack := about(t, dir)
	words := strings.Split(string(line), " ")
	words[2] = "1" // as if all but a byte had come later
	if err := os.WriteFile(onlyFile(t, dir), []byte(strings.Join(words, " ")+"\n"+string(pack)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := change(); got < 8<<20 {
		t.Errorf("a change of what has grown took %d bytes, want all", got)
	}
	if got := change(); got > 16<<10 {
		t.Errorf("the next change took %d bytes, want little", got)
	}
}
