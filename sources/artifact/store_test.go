package artifact_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

func one(text string) artifact.Files {
	return artifact.Files{"a.yaml": {Data: []byte(text)}}
}

func newStore(t testing.TB, dir string) *artifact.Store {
	t.Helper()
	s, err := artifact.NewStore(dir, artifact.Options{BaseURL: "http://store"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(t testing.TB, s *artifact.Store, owner string, files artifact.Files) artifact.Stored {
	t.Helper()
	stored, err := s.Put(t.Context(), owner, files)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// content returns the store's content of each artifact, or "not found".
func content(t testing.TB, s *artifact.Store, stored ...artifact.Stored) []string {
	t.Helper()
	var out []string
	for _, a := range stored {
		files, err := s.Open(t.Context(), a.Digest)
		switch {
		case errors.Is(err, artifact.ErrNotFound):
			out = append(out, "not found")
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, string(files["a.yaml"].Data))
		}
	}
	return out
}

func TestStoreOpensWhatItTook(t *testing.T) {
	s := newStore(t, t.TempDir())
	// Repetitive manifests compress far better than the bound for foreign archives
	// allows, which does not apply to the store.
	text := strings.Repeat("replicas: 1\n", 1<<20)
	if diff := cmp.Diff([]string{text}, content(t, s, put(t, s, "a", one(text)))); diff != "" {
		t.Errorf("content differs")
	}
}

func TestStoreKeepsTheLastTwoOfEachOwner(t *testing.T) {
	s := newStore(t, t.TempDir())
	a1, a2, a3 := put(t, s, "a", one("1")), put(t, s, "a", one("2")), put(t, s, "a", one("3"))
	if diff := cmp.Diff([]string{"not found", "2", "3"}, content(t, s, a1, a2, a3)); diff != "" {
		t.Errorf("after three (-want +got):\n%s", diff)
	}
	put(t, s, "b", one("2"))
	put(t, s, "a", one("4"))
	put(t, s, "a", one("4"))
	if diff := cmp.Diff([]string{"not found", "2", "3"}, content(t, s, a1, a2, a3)); diff != "" {
		t.Errorf("what another owner has stays (-want +got):\n%s", diff)
	}
	if back := put(t, s, "a", one("3")); back.Digest != a3.Digest {
		t.Errorf("the same files got another digest: %s, %s", back.Digest, a3.Digest)
	}
	if err := s.Release("b"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"not found", "not found", "3"}, content(t, s, a1, a2, a3)); diff != "" {
		t.Errorf("after the other owner went (-want +got):\n%s", diff)
	}
}

func TestStoreKeepsWhatIsInUse(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	used := put(t, s, "a", one("1"))
	store := func(text string, inUse ...string) {
		t.Helper()
		if _, err := s.Put(t.Context(), "a", one(text), inUse...); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want string) {
		t.Helper()
		if diff := cmp.Diff([]string{want}, content(t, s, used)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if owns := s.Owns("a", used.Digest); owns != (want == "1") {
			t.Errorf("owned = %v", owns)
		}
	}
	for _, text := range []string{"2", "3", "4"} {
		store(text, used.Digest)
	}
	has("1")
	s = newStore(t, dir)
	if _, err := s.Sweep(func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	has("1")
	store("5", "sha256:"+strings.Repeat("0", 64))
	has("not found")
}

func TestUsage(t *testing.T) {
	s := newStore(t, t.TempDir())
	a1, a2 := put(t, s, artifact.Owner("GitRepository", "ns", "a"), one("1")), put(t, s, artifact.Owner("GitRepository", "ns", "a"), one("22"))
	b := put(t, s, artifact.Owner("OCIRepository", "ns", "b"), one("333"))
	put(t, s, artifact.Owner("GitRepository", "ns", "c"), one("333"))
	put(t, s, artifact.Owner("GitRepository", "ns-2", "a"), one("4444"))
	for name, tc := range map[string]struct {
		owner string
		inUse []string
		want  artifact.Usage
	}{
		"one that has none":              {artifact.Owner("GitRepository", "ns", "new"), nil, artifact.Usage{Others: a1.Size + a2.Size + b.Size}},
		"its own give way":               {artifact.Owner("GitRepository", "ns", "a"), nil, artifact.Usage{Others: b.Size, Newest: a2.Size}},
		"an older one is in use":         {artifact.Owner("GitRepository", "ns", "a"), []string{a1.Digest, a2.Digest}, artifact.Usage{Others: b.Size, InUse: a1.Size, Newest: a2.Size}},
		"it has the same as another":     {artifact.Owner("OCIRepository", "ns", "b"), nil, artifact.Usage{Others: a1.Size + a2.Size, Newest: b.Size}},
		"one that others use is not its": {artifact.Owner("OCIRepository", "ns", "b"), []string{a1.Digest}, artifact.Usage{Others: a1.Size + a2.Size, Newest: b.Size}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, artifact.UsageOf(s, "ns", tc.owner, tc.inUse...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPutWithin(t *testing.T) {
	s := newStore(t, t.TempDir())
	first := put(t, s, "a", one("1"))
	no := errors.New("no room")
	if _, err := s.PutWithin(t.Context(), "a", one("2"), func(int64) error { return no }); !errors.Is(err, no) {
		t.Errorf("error = %v, want %v", err, no)
	}
	if got := artifact.UsageOf(s, "", "a"); got.Newest != first.Size || got.Others != 0 {
		t.Errorf("what was refused is stored: %+v", got)
	}
}

func TestStoreSweeps(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	a, b := put(t, s, "a", one("1")), put(t, s, "b", one("2"))
	if err := os.WriteFile(filepath.Join(dir, "sha256", strings.Repeat("0", 64)+".tar.gz"), []byte("left behind"), 0o600); err != nil {
		t.Fatal(err)
	}
	removed, err := s.Sweep(func(owner string) bool { return owner == "a" })
	if err != nil || removed != 2 {
		t.Errorf("Sweep = %d, %v; want 2", removed, err)
	}
	if diff := cmp.Diff([]string{"1", "not found"}, content(t, s, a, b)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestStoreSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	a1, a2 := put(t, s, "a", one("1")), put(t, s, "a", one("2"))
	_ = s.Close()
	s = newStore(t, dir)
	if diff := cmp.Diff([]string{"1", "2"}, content(t, s, a1, a2)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	put(t, s, "a", one("3"))
	if diff := cmp.Diff([]string{"not found", "2"}, content(t, s, a1, a2)); diff != "" {
		t.Errorf("the owner's history was forgotten (-want +got):\n%s", diff)
	}
}

func TestStoreNoticesDamage(t *testing.T) {
	damage := map[string]func(path string, good []byte) error{
		"a bit that flipped": func(path string, good []byte) error {
			bad := bytes.Clone(good)
			bad[len(bad)/2] ^= 1
			return os.WriteFile(path, bad, 0o600)
		},
		"a file cut short": func(path string, good []byte) error { return os.Truncate(path, int64(len(good)/2)) },
		"an empty file":    func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"other files":      func(path string, _ []byte) error { return os.WriteFile(path, pack(t, one("other")), 0o600) },
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := newStore(t, dir)
			stored := put(t, s, "a", one("good"))
			path := filepath.Join(dir, stored.Path)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := harm(path, good); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(t.Context(), stored.Digest); !errors.Is(err, artifact.ErrCorrupt) {
				t.Errorf("Open = %v, want ErrCorrupt", err)
			}
			if s.Has(stored.Digest) {
				t.Error("the store still says that it has the artifact")
			}
			put(t, s, "a", one("good"))
			if diff := cmp.Diff([]string{"good"}, content(t, s, stored)); diff != "" {
				t.Errorf("stored again (-want +got):\n%s", diff)
			}
			// A process that has not read the file before detects the damage, too.
			if err := harm(path, good); err != nil {
				t.Fatal(err)
			}
			if newStore(t, dir).Has(stored.Digest) {
				t.Error("another process takes the damaged file for good")
			}
		})
	}
}

func TestStoreRefusesStrangeDigests(t *testing.T) {
	s := newStore(t, t.TempDir())
	for _, digest := range []string{"", "sha256:", "sha256:../../etc/passwd", "md5:" + strings.Repeat("0", 64), strings.Repeat("0", 64)} {
		if _, err := s.Open(t.Context(), digest); !errors.Is(err, artifact.ErrNotFound) || s.Has(digest) {
			t.Errorf("Open(%q) = %v, want ErrNotFound", digest, err)
		}
	}
}

func TestStoreServes(t *testing.T) {
	s := newStore(t, t.TempDir())
	stored := put(t, s, "a", one("1"))
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	get := func(method, path string) (int, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, body
	}
	if stored.URL != "http://store/"+stored.Path {
		t.Errorf("URL = %q", stored.URL)
	}
	status, body := get(http.MethodGet, "/"+stored.Path)
	files, err := artifact.Extract(bytes.NewReader(body), artifact.Limits{})
	if status != http.StatusOK || err != nil || string(files["a.yaml"].Data) != "1" {
		t.Errorf("GET = %d, %v, %v", status, files, err)
	}
	if int64(len(body)) != stored.Size {
		t.Errorf("%d bytes served, %d stored", len(body), stored.Size)
	}
	for path, want := range map[string]int{
		"/": 404, "/sha256/": 404, "/owners/": 404, "/sha256/../owners/x": 404, "/sha256/" + strings.Repeat("0", 64) + ".tar.gz": 404,
		"/x/" + stored.Path: 404,
	} {
		if status, _ := get(http.MethodGet, path); status != want {
			t.Errorf("GET %s = %d, want %d", path, status, want)
		}
	}
	if status, _ := get(http.MethodPost, "/"+stored.Path); status != http.StatusMethodNotAllowed {
		t.Errorf("POST = %d", status)
	}
}

func TestStoreAtOnce(t *testing.T) {
	s := newStore(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				stored, err := s.Put(t.Context(), fmt.Sprint(i), one(fmt.Sprint(j)))
				if err != nil {
					t.Error(err)
					return
				}
				if files, err := s.Open(t.Context(), stored.Digest); err != nil || string(files["a.yaml"].Data) != fmt.Sprint(j) {
					t.Errorf("Open = %v, %v", files, err)
				}
			}
		})
	}
	wg.Wait()
}

// writerDir is the environment variable that makes a child process the writer to
// be killed.
const writerDir = "FLOTILLA_TEST_WRITER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		os.Exit(writeForEver(context.Background(), dir))
	}
	os.Exit(m.Run())
}

// writeForEver stores artifacts one after the other and prints the digest of
// each.
func writeForEver(ctx context.Context, dir string) int {
	s, err := artifact.NewStore(dir, artifact.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := 0; ; i++ {
		text := fmt.Sprintf("%d %s", i, strings.Repeat(fmt.Sprint(i), 2000))
		stored, err := s.Put(ctx, fmt.Sprint("owner-", i%3), one(text))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(stored.Digest)
	}
}

func TestStoreSurvivesKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	for round := range 12 {
		last := killAfter(t, dir, round)
		s := newStore(t, dir)
		if last != "" {
			if _, err := s.Open(t.Context(), last); err != nil {
				t.Fatalf("round %d: what was reported as stored: %v", round, err)
			}
		}
		entries, err := fs.ReadDir(os.DirFS(dir), "sha256")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			digest := "sha256:" + strings.TrimSuffix(e.Name(), ".tar.gz")
			if !s.Has(digest) {
				t.Fatalf("round %d: %s is there and is not whole", round, e.Name())
			}
		}
		if left, _ := fs.ReadDir(os.DirFS(dir), "tmp"); len(left) != 0 {
			t.Fatalf("round %d: %d half-written files remain", round, len(left))
		}
		_ = s.Close()
	}
}

// killAfter runs a writer, kills it at some point after its n-th artifact, and
// returns the last digest that it printed.
func killAfter(t *testing.T, dir string, n int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	last := ""
	for i := 0; i <= n*3 && lines.Scan(); i++ {
		last = lines.Text()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		last = lines.Text()
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	return last
}

// TestStoreWithoutRoom checks that on a full disk nothing is stored, and existing
// artifacts are still served, also after a restart.
func TestStoreWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	full := errors.New("there is no room")
	var room error
	open := func() *artifact.Store {
		store, err := artifact.NewStore(dir, artifact.Options{DiskFull: func() error { return room }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	store := open()
	first, err := store.Put(t.Context(), "shop", artifact.Files{"a": {Data: []byte("1")}})
	if err != nil {
		t.Fatal(err)
	}
	room = full
	if _, err := store.Put(t.Context(), "shop", artifact.Files{"a": {Data: []byte("2")}}); !errors.Is(err, full) {
		t.Errorf("put without room: %v", err)
	}
	if again, err := store.Put(t.Context(), "shop", artifact.Files{"a": {Data: []byte("1")}}); err != nil || again != first {
		t.Errorf("put what is there: %+v, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tmp", "half"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store.Close()
	before, err := os.Stat(filepath.Join(dir, "tmp"))
	if err != nil {
		t.Fatal(err)
	}
	store = open()
	if !store.Has(first.Digest) {
		t.Error("what was there is gone")
	}
	after, err := os.Stat(filepath.Join(dir, "tmp"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the folder of what is half done was made anew: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("what was half done is still there: %v, %v", left, err)
	}
}
