package socket_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/controlplane/socket"
)

// listen leaves a socket behind, as a process does that is killed.
func listen(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// files are the names below a folder, but for those of the test's own folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestPlaces has a process that is killed, and one that ends in order, in a folder that
// has room for a socket's path, and in one that has none.
func TestPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		below         string
		left, started int // what is elsewhere once it was killed, and while the next one runs
	}{
		"a short path": {"x", 0, 0},
		"a long path":  {strings.Repeat("long/", 25), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := os.MkdirTemp("", "s-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(base) })
			temp := filepath.Join(base, "t")
			if err := os.Mkdir(temp, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", temp)
			dir := filepath.Join(base, tc.below)
			killed, err := socket.New(dir, "a.sock")
			if err != nil {
				t.Fatal(err)
			}
			listen(t, killed.Path)
			if got := len(files(t, temp)); got != tc.left {
				t.Errorf("%d folders elsewhere, want %d", got, tc.left)
			}
			next, err := socket.New(dir, "a.sock")
			if err != nil {
				t.Fatal(err)
			}
			listen(t, next.Path)
			if got := files(t, temp); len(got) != tc.started {
				t.Errorf("the next one has left elsewhere %q", got)
			}
			if err := next.Remove(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string(nil), append(files(t, temp), files(t, dir)...)); diff != "" {
				t.Errorf("it leaves behind:\n%s", diff)
			}
		})
	}
}

// TestForeignNotes removes nothing that was not made for a socket.
func TestForeignNotes(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, note := range []string{other, "", "/", "relative/flotilla-socket-1"} {
		if err := os.WriteFile(filepath.Join(dir, "a.sock.elsewhere"), []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := socket.New(dir, "a.sock"); err != nil {
			t.Errorf("%q: %v", note, err)
		}
		if _, err := os.Stat(other); err != nil {
			t.Errorf("%q: %v", note, err)
		}
	}
}
