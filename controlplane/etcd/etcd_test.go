package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
)

func TestRestartKeepsWhatWasWritten(t *testing.T) {
	cases := map[string]string{
		"with its socket in the folder":           "e",
		"with a path too long to hold the socket": strings.Repeat("long/", 25),
	}
	for name, sub := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(shortTempDir(t), sub)
			first := start(t, dir)
			before := revision(t, first)
			put(t, first, "a", "1")
			put(t, first, "b", "2")
			if got := revision(t, first) - before; got != 2 {
				t.Errorf("two writes moved the revision by %d", got)
			}
			want := revision(t, first)
			put(t, first, "a", "1") // b is the last but one
			want++
			keys, err := first.Written(t.Context(), want-2)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a", "b"}, keys); diff != "" {
				t.Errorf("keys written last (-want +got):\n%s", diff)
			}
			first.Stop()
			first.Stop() // a second stop does nothing

			second := start(t, dir)
			if got := revision(t, second); got != want {
				t.Errorf("revision after restart = %d, want %d", got, want)
			}
		})
	}
}

// TestSocketOfAKilledProcess starts over the socket that a killed process left.
func TestSocketOfAKilledProcess(t *testing.T) {
	dir := filepath.Join(shortTempDir(t), "e")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "etcd.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	put(t, start(t, dir), "a", "1")
}

func TestSocketIsForTheOwnerAlone(t *testing.T) {
	dir := filepath.Join(shortTempDir(t), "e")
	start(t, dir)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode of the folder with the socket = %o, want 700", got)
	}
}

// TestTheLogFitsIntoWhatIsLeft checks that the space that the store allocates ahead for its
// log fits into what is left when writes are refused (a quarter of --min-free-disk);
// otherwise the store would fail later. It also checks the change from one file to the next.
func TestTheLogFitsIntoWhatIsLeft(t *testing.T) {
	const left = 32 << 20
	dir := filepath.Join(shortTempDir(t), "e")
	s := start(t, dir)
	value := strings.Repeat("x", 1<<20)
	for i := range 20 {
		put(t, s, fmt.Sprint("large-", i%2), value)
	}
	files, err := os.ReadDir(filepath.Join(dir, "member", "wal"))
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			continue // it was renamed
		}
		if info.Size() > left/2 {
			t.Errorf("%s takes %d bytes, %d are left", file.Name(), info.Size(), left)
		}
		if filepath.Ext(file.Name()) == ".wal" {
			logs++
		}
	}
	if logs < 2 {
		t.Errorf("the log is in %d files", logs)
	}
}

// shortTempDir is a temporary folder whose path leaves room for a socket.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, dir string) *etcd.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := etcd.Start(ctx, etcd.Options{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func revision(t *testing.T, s *etcd.Server) int64 {
	t.Helper()
	r, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func put(t *testing.T, s *etcd.Server, key, value string) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: s.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// A store that has reached its limit accepts writes again once something was deleted, without
// further action.
func TestRelieve(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := etcd.Start(ctx, etcd.Options{DataDir: filepath.Join(shortTempDir(t), "e"), UnsafeNoFsync: true, QuotaBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	client, err := clientv3.New(clientv3.Config{Endpoints: s.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	relieve := func(when string, want bool) {
		t.Helper()
		if full, err := s.Relieve(ctx); err != nil || full != want {
			t.Errorf("%s: full = %v, %v, want %v", when, full, err, want)
		}
	}
	relieve("empty", false)
	fill(ctx, t, s, client)
	relieve("with nothing to let go of", true)
	if _, err := client.Delete(ctx, "large-", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	// Freed space counts once the store has committed the change, a moment later.
	for full := true; full; {
		if full, err = s.Relieve(ctx); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, "small", "1")
}

// fill writes to a store until it is full. A slow store leaves pages free that it has
// rewritten meanwhile, so fill releases those on the way.
func fill(ctx context.Context, t *testing.T, s *etcd.Server, client *clientv3.Client) {
	t.Helper()
	value := strings.Repeat("x", 1<<20)
	for i := range 64 {
		_, err := client.Put(ctx, fmt.Sprintf("large-%d", i), value)
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "database space exceeded") {
			t.Fatal(err)
		}
		if full, err := s.Relieve(ctx); full || err != nil {
			return
		}
	}
	t.Fatal("a store of 16 MiB takes 64")
}

// The error with which etcd ends the process is logged before.
func TestWhatIsFatalIsLogged(t *testing.T) {
	if dir := os.Getenv("FLOTILLA_ETCD_LOST"); dir != "" {
		lose(t, dir)
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWhatIsFatalIsLogged$")
	again.Env = append(os.Environ(), "FLOTILLA_ETCD_LOST="+filepath.Join(shortTempDir(t), "e"))
	out, err := again.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "The store cannot go on, and the process ends: ") {
		t.Errorf("the process ended with %v and said:\n%s", err, out)
	}
}

// lose writes to a store that may not grow its files any more, which it takes for a fault of
// the disk.
func lose(t *testing.T, dir string) {
	log := funcr.New(func(_, args string) { fmt.Println(args) }, funcr.Options{})
	s, err := etcd.Start(t.Context(), etcd.Options{DataDir: dir, UnsafeNoFsync: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		put(t, s, fmt.Sprintf("k%d", i), strings.Repeat("x", 1<<20))
	}
}
