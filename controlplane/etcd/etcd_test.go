package etcd_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
