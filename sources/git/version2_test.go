package git_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/git"
)

// wireCount counts the bytes of connections, in both directions, and the connections.
type wireCount struct{ bytes, connections atomic.Int64 }

func (w *wireCount) dialer() egress.Dialer {
	return egress.Dialer{Networks: loopback, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		w.connections.Add(1)
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{conn, w}, err
	}}
}

// since returns how many bytes went over the wire while do ran.
func (w *wireCount) since(do func()) int64 {
	before := w.bytes.Load()
	do()
	return w.bytes.Load() - before
}

type countedConn struct {
	net.Conn
	count *wireCount
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.count.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.count.bytes.Add(int64(n))
	return n, err
}

// packedRefs writes many refs at once, as git pack-refs would.
func (f *fixture) packedRefs(format string, count int, commit string) {
	f.t.Helper()
	var refs strings.Builder
	refs.WriteString("# pack-refs with: peeled fully-peeled sorted \n" + commit + " refs/heads/main\n")
	for i := range count {
		fmt.Fprintf(&refs, "%s "+format+"\n", commit, i)
	}
	if err := os.WriteFile(filepath.Join(f.root, "app.git", "packed-refs"), []byte(refs.String()), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// TestAPollOfManyRefsIsSmall counts what a poll of a repository with 100,000 refs takes.
func TestAPollOfManyRefsIsSmall(t *testing.T) {
	f := newFixture(t)
	tip := f.commit("one", map[string]string{"a.yaml": "one\n"})
	f.packedRefs("refs/pull/%06d/head", 100_000, tip)
	count := &wireCount{}
	kept := git.NewKept(git.KeptOptions{})
	remote := func() *git.Remote { // as the loop has a new one each time
		return f.remote(f.url, git.Credentials{}, git.Options{Egress: count.dialer(), Kept: kept})
	}
	resolve := func() {
		commit, err := remote().Resolve(t.Context(), git.Ref{Branch: "main"})
		if err != nil || commit.Hash != tip {
			t.Fatalf("Resolve = %v, %v", commit, err)
		}
	}
	before := f.server.Requests()
	first := count.since(resolve)
	if first > 4<<10 {
		t.Errorf("the first poll takes %d bytes, want at most 4 KiB", first)
	}
	again := count.since(resolve)
	if again > 2<<10 {
		t.Errorf("another poll takes %d bytes, want at most 2 KiB", again)
	}
	if got := f.server.Requests() - before; got != 3 {
		t.Errorf("%d requests for two polls, want 3", got)
	}
	if got := count.connections.Load(); got != 1 {
		t.Errorf("%d connections for two polls, want 1", got)
	}
	fetch := count.since(func() {
		if err := fetchMain(t.Context(), remote()); err != nil {
			t.Error(err)
		}
	})
	if fetch > 4<<10 {
		t.Errorf("a poll and a fetch take %d bytes, want at most 4 KiB", fetch)
	}
	t.Logf("first poll %d bytes, another %d, with a fetch %d", first, again, fetch)
}

// TestARefThatIsNotThereIsCheap checks that the branches that a message names are not all that there are.
func TestARefThatIsNotThereIsCheap(t *testing.T) {
	f := newFixture(t)
	tip := f.commit("one", nil)
	f.packedRefs("refs/heads/topic-%06d", 20_000, tip)
	count := &wireCount{}
	bytes := count.since(func() {
		_, err := f.remote(f.url, git.Credentials{}, git.Options{Egress: count.dialer()}).Resolve(t.Context(), git.Ref{Branch: "mian"})
		if !errors.Is(err, git.ErrRefNotFound) || !strings.Contains(err.Error(), "(branches: main, topic-000000, ") {
			t.Errorf("error = %v, want one that names branches", err)
		}
	})
	if bytes > 256<<10 {
		t.Errorf("%d bytes were read for it", bytes)
	}
}

// oldServer hides from the fixture's server that version 2 is asked for.
func (f *fixture) oldServer() string {
	front := f.front()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Git-Protocol")
		front.ServeHTTP(w, r)
	}))
	f.t.Cleanup(s.Close)
	return s.URL + "/app.git"
}

// TestServersOfAllVersions reads the same from servers that speak version 2, 1 or 0, over http and ssh.
func TestServersOfAllVersions(t *testing.T) {
	f := newFixture(t)
	old := f.commit("one", map[string]string{"a.yaml": "one\n"})
	f.git("tag", "-a", "v1.0.0", "-m", "first")
	f.git("push", "--quiet", "origin", "v1.0.0")
	tip := f.commit("two", map[string]string{"a.yaml": "two\n"})
	host, _ := newSigner(t)
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	front := f.front()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Git-Protocol", "version=1")
		front.ServeHTTP(w, r)
	}))
	t.Cleanup(first.Close)
	secret := map[string]string{"identity": string(identity), "known_hosts": string(server.knownHosts(host.PublicKey()))}
	sshd := startOpenSSH(t, "AcceptEnv GIT_PROTOCOL")
	sshdOld := startOpenSSH(t)
	path := filepath.Join(f.root, "app.git")
	for name, tc := range map[string]struct {
		url    string
		secret map[string]string
	}{
		"http, version 2":    {url: f.url},
		"http, version 1":    {url: first.URL + "/app.git"},
		"http, version 0":    {url: f.oldServer()},
		"ssh, version 0":     {url: server.url("app"), secret: secret},
		"openssh, version 2": {url: sshd.url(path), secret: sshd.secret},
		"openssh, version 0": {url: sshdOld.url(path), secret: sshdOld.secret},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "openssh") && tc.url == "" {
				t.Skip("there is no sshd: install openssh-server")
			}
			remote := f.remote(tc.url, credentials(t, tc.url, tc.secret), git.Options{Kept: git.NewKept(git.KeptOptions{})})
			got := map[string]string{}
			for _, ref := range []git.Ref{{Branch: "main"}, {SemVer: "1.x"}, {Name: "HEAD"}, {Tag: "v1.0.0"}, {Branch: "main", Commit: old}, {Commit: old}, {Branch: "dev"}} {
				commit, err := remote.Resolve(t.Context(), ref)
				if err != nil {
					got[fmt.Sprint(ref)] = strings.Replace(err.Error(), git.MaskURL(tc.url), "URL", 1)
					continue
				}
				tree, err := remote.Fetch(t.Context(), commit)
				if err != nil {
					t.Fatal(err)
				}
				text, err := fs.ReadFile(tree, "a.yaml")
				if err := errors.Join(err, tree.Close()); err != nil {
					t.Fatal(err)
				}
				got[fmt.Sprint(ref)] = commit.Revision().String() + " " + string(text)
			}
			want := map[string]string{
				fmt.Sprint(git.Ref{Branch: "main"}):              "main@sha1:" + tip + " two\n",
				fmt.Sprint(git.Ref{Name: "HEAD"}):                "HEAD@sha1:" + tip + " two\n",
				fmt.Sprint(git.Ref{SemVer: "1.x"}):               "v1.0.0@sha1:" + old + " one\n",
				fmt.Sprint(git.Ref{Tag: "v1.0.0"}):               "v1.0.0@sha1:" + old + " one\n",
				fmt.Sprint(git.Ref{Branch: "main", Commit: old}): "main@sha1:" + old + " one\n",
				fmt.Sprint(git.Ref{Commit: old}):                 "sha1:" + old + " one\n",
				fmt.Sprint(git.Ref{Branch: "dev"}):               "resolve of URL: branch dev: ref not found; change spec.ref or push it (branches: main)",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what was read (-want +got):\n%s", diff)
			}
		})
	}
}

// openSSH is a real OpenSSH server.
type openSSH struct {
	address, user string
	secret        map[string]string
}

func (s openSSH) url(path string) string {
	if s.address == "" {
		return ""
	}
	return "ssh://" + s.user + "@" + s.address + path
}

// startOpenSSH runs sshd for the time of the test; the zero value means that there is none.
func startOpenSSH(t *testing.T, options ...string) openSSH {
	t.Helper()
	const program = "/usr/sbin/sshd"
	who, err := user.Current()
	if _, none := os.Stat(program); none != nil || err != nil {
		return openSSH{}
	}
	if who.Uid == "0" { // where it separates its privileges; a service would have made it
		_ = os.MkdirAll("/run/sshd", 0o755)
	}
	dir := t.TempDir()
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	for _, name := range []string{"host", "client"} {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", err, out)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	config := append([]string{
		"ListenAddress " + address, "HostKey " + filepath.Join(dir, "host"), "PidFile none",
		"AuthorizedKeysFile " + filepath.Join(dir, "client.pub"), "StrictModes no", "UsePAM no",
		"PasswordAuthentication no", "PermitRootLogin prohibit-password",
	}, options...)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-D", "-e", "-f", filepath.Join(dir, "config"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	deadline := time.Now().Add(10 * time.Second)
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("sshd does not listen: %v", err)
		}
	}
	host, port, _ := net.SplitHostPort(address)
	return openSSH{address: address, user: who.Username, secret: map[string]string{
		"identity": read("client"), "known_hosts": fmt.Sprintf("[%s]:%s %s", host, port, read("host.pub")),
	}}
}

// TestASHA256RepositoryIsRefusedByName checks that a repository with other hashes is told as such, by servers of both versions.
func TestASHA256RepositoryIsRefusedByName(t *testing.T) {
	f := newFixture(t)
	if _, err := gitserver.Git(t.Context(), f.root, "init", "--quiet", "--bare", "--object-format=sha256", "--initial-branch=main", "new.git"); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, urls ...string) {
		for _, url := range urls {
			_, err := f.remote(url, git.Credentials{}, git.Options{}).Resolve(t.Context(), git.Ref{Branch: "main"})
			if !errors.Is(err, git.ErrObjectFormat) || !strings.Contains(err.Error(), "SHA-256, which is not supported yet") {
				t.Errorf("%s: error = %v, want one that names SHA-256", url, err)
			}
		}
	}
	t.Run("empty", func(t *testing.T) { check(t, f.server.URL("new")) }) // version 0 says nothing of an empty one
	work := filepath.Join(t.TempDir(), "work")
	for _, args := range [][]string{
		{"init", "--quiet", "--object-format=sha256", work},
		{"-C", work, "commit", "--quiet", "--allow-empty", "-m", "one"},
		{"-C", work, "push", "--quiet", filepath.Join(f.root, "new.git"), "HEAD:main"},
	} {
		if _, err := gitserver.Git(t.Context(), f.root, args...); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("with a commit", func(t *testing.T) {
		check(t, f.server.URL("new"), strings.Replace(f.oldServer(), "/app.git", "/new.git", 1))
	})
}

// TestWhatIsKeptIsDoubted checks that a server that has changed since it was greeted is greeted again.
func TestWhatIsKeptIsDoubted(t *testing.T) {
	f := newFixture(t)
	tip := f.commit("one", nil)
	front := f.front()
	var mode atomic.Value
	mode.Store("version 2")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch mode.Load() {
		case "version 0":
			r.Header.Del("Git-Protocol")
		case "moved":
			if strings.HasPrefix(r.URL.Path, "/app.git") {
				http.Redirect(w, r, strings.Replace(r.URL.String(), "/app.git", "/moved.git", 1), http.StatusMovedPermanently)
				return
			}
			r.URL.Path = strings.Replace(r.URL.Path, "/moved.git", "/app.git", 1)
		case "private":
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		front.ServeHTTP(w, r)
	}))
	defer s.Close()
	kept := git.NewKept(git.KeptOptions{})
	for _, step := range []struct {
		mode string
		want error
	}{{"version 2", nil}, {"version 0", nil}, {"version 2", nil}, {"moved", nil}, {"moved", nil}, {"version 2", nil}, {"private", git.ErrUnauthorized}, {"version 0", nil}} {
		mode.Store(step.mode)
		commit, err := f.remote(s.URL+"/app.git", git.Credentials{}, git.Options{Kept: kept}).Resolve(t.Context(), git.Ref{Branch: "main"})
		if !errors.Is(err, step.want) || err == nil && commit.Hash != tip {
			t.Errorf("%s: Resolve = %v, %v; want %v", step.mode, commit, err, step.want)
		}
	}
}

// TestKeptConnectionsAreOfOneIdentity checks that nobody goes by what another one's credentials opened.
func TestKeptConnectionsAreOfOneIdentity(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	front := f.front()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != canary {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		front.ServeHTTP(w, r)
	}))
	defer s.Close()
	count := &wireCount{}
	url := s.URL + "/app.git"
	opts := git.Options{Kept: git.NewKept(git.KeptOptions{}), Egress: count.dialer()}
	owner := credentials(t, url, map[string]string{"username": "bot", "password": canary})
	for range 3 {
		if err := fetchMain(t.Context(), f.remote(url, owner, opts)); err != nil {
			t.Fatal(err)
		}
	}
	if got := count.connections.Load(); got != 1 {
		t.Errorf("%d connections of one identity, want 1", got)
	}
	for _, cred := range []git.Credentials{{}, credentials(t, url, map[string]string{"username": "bot", "password": "wrong"})} {
		if err := fetchMain(t.Context(), f.remote(url, cred, opts)); !errors.Is(err, git.ErrUnauthorized) {
			t.Errorf("error = %v, want ErrUnauthorized", err)
		}
	}
	if got := count.connections.Load(); got != 3 {
		t.Errorf("%d connections of three identities, want 3", got)
	}
}

// TestAKeptConnectionThatEnds checks that a server may close a kept connection at any time, also as it is used again.
func TestAKeptConnectionThatEnds(t *testing.T) {
	f := newFixture(t)
	tip := f.commit("one", nil)
	front := f.front()
	var requests, ended atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 3 { // the first that goes by a kept connection alone
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				ended.Add(1)
				_ = conn.Close()
			}
			return
		}
		front.ServeHTTP(w, r)
	}))
	defer s.Close()
	kept := git.NewKept(git.KeptOptions{})
	for range 3 {
		commit, err := f.remote(s.URL+"/app.git", git.Credentials{}, git.Options{Kept: kept}).Resolve(t.Context(), git.Ref{Branch: "main"})
		if err != nil || commit.Hash != tip {
			t.Errorf("Resolve = %v, %v", commit, err)
		}
	}
	if ended.Load() != 1 || requests.Load() != 5 {
		t.Errorf("%d requests, of which %d were cut off, want 5 and 1", requests.Load(), ended.Load())
	}
}

// TestSomeFilesAlone counts what is transferred if a few files are wanted of a repository with much history and many files.
func TestSomeFilesAlone(t *testing.T) {
	f := newFixture(t)
	files := map[string]string{"apps/web/a.yaml": "a: 1\n", "apps/web/b.yaml": "b: 1\n", ".sourceignore": "*.md\n"}
	for i := range 20 {
		files[fmt.Sprintf("images/%02d.png", i)] = noise(t, 200<<10)
	}
	f.commit("one", files)
	for i := range 5 {
		f.commit("more", map[string]string{"images/00.png": noise(t, 200<<10), "apps/web/b.yaml": fmt.Sprintf("b: %d\n", i)})
	}
	inApps := func(file string) bool { return strings.HasPrefix(file, "apps/web/") || file == ".sourceignore" }
	fetch := func(t *testing.T, configure string) (int64, map[string]string) {
		t.Helper()
		if _, err := gitserver.Git(t.Context(), filepath.Join(f.root, "app.git"), "config", "uploadpack.allowFilter", configure); err != nil {
			t.Fatal(err)
		}
		count := &wireCount{}
		remote := f.remote(f.url, git.Credentials{}, git.Options{Egress: count.dialer()})
		commit, err := remote.Resolve(t.Context(), git.Ref{Branch: "main"})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		bytes := count.since(func() {
			tree, err := remote.FetchSome(t.Context(), commit, inApps)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			for name := range files {
				if text, err := tree.ReadFile(name); err == nil && inApps(name) {
					got[name] = string(text)
				}
			}
		})
		return bytes, got
	}
	want := map[string]string{"apps/web/a.yaml": "a: 1\n", "apps/web/b.yaml": "b: 4\n", ".sourceignore": "*.md\n"}
	some, got := fetch(t, "true")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if some > 100<<10 {
		t.Errorf("%d bytes were transferred, want at most 100 KiB", some)
	}
	all, got := fetch(t, "false")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files, of a server that cannot leave out any (-want +got):\n%s", diff)
	}
	if all < 2<<20 {
		t.Errorf("a server that does not filter sent %d bytes: the test shows nothing", all)
	}
	t.Logf("some files: %d bytes, all: %d", some, all)
}

// noise returns text that does not compress.
func noise(t *testing.T, size int) string {
	t.Helper()
	raw := make([]byte, size*3/4)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// TestHostileVersion2 passes answers to the requests of version 2 that are none.
func TestHostileVersion2(t *testing.T) {
	hash := strings.Repeat("ab", 20)
	greeting := pkt("version 2\n") + pkt("ls-refs\n") + pkt("fetch=shallow filter\n") + "0000"
	list := pkt(hash+" refs/heads/main\n") + "0000"
	f := &fixture{t: t}
	for name, tc := range map[string]struct {
		list, fetch string
		want        error
	}{
		"a page instead of refs":      {list: "<html>" + canary, want: git.ErrMalformed},
		"an error instead of refs":    {list: pkt("ERR " + canary + " access denied"), want: git.ErrUnauthorized},
		"endless refs":                {list: strings.Repeat(pkt(hash+" refs/heads/main\n"), 100_000), want: git.ErrTooLarge},
		"no transfer":                 {fetch: "0000", want: git.ErrMalformed},
		"an error instead":            {fetch: pkt("ERR upload-pack: not our ref " + canary), want: git.ErrMalformed},
		"a transfer that is none":     {fetch: pkt("packfile\n") + pkt("\x01"+canary) + "0000", want: git.ErrMalformed},
		"a transfer that says no":     {fetch: pkt("packfile\n") + pkt("\x03"+canary), want: git.ErrMalformed},
		"endless progress":            {fetch: pkt("packfile\n") + strings.Repeat(pkt("\x02counting\n"), 100_000), want: git.ErrTooLarge},
		"endless lines of a section":  {fetch: pkt("acknowledgments\n") + strings.Repeat(pkt("NAK\n"), 100_000), want: git.ErrTooLarge},
		"a pack without the commit":   {fetch: pkt("packfile\n") + pkt("\x01"+string(packOf(entry(3, 5, nil, []byte("hello"))))) + "0000", want: git.ErrRefNotFound},
		"an object that says it grew": {fetch: pkt("packfile\n") + pkt("\x01"+string(packOf(entry(3, 1<<40, nil, nil)))) + "0000", want: git.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					advertise(greeting)(w, r)
					return
				}
				var asked bytes.Buffer
				_, _ = asked.ReadFrom(r.Body)
				answer := list
				switch {
				case strings.Contains(asked.String(), "command=fetch"):
					answer = tc.fetch
				case tc.list != "":
					answer = tc.list
				}
				fmt.Fprint(w, answer)
			})
			err := fetchMain(t.Context(), f.remote(s, git.Credentials{}, git.Options{Limits: git.Limits{Pack: 256 << 10, Refs: 256 << 10}}))
			if !errors.Is(err, tc.want) {
				t.Errorf("error = %v, want %v", err, tc.want)
			}
			noCanary(t, err)
		})
	}
}
