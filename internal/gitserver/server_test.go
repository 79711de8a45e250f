package gitserver_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// noise does not compress, so that the push is a large one.
func noise(length int) []byte {
	content := make([]byte, length)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	return content
}

func TestPushThenClone(t *testing.T) {
	ctx, root := t.Context(), t.TempDir()
	server, err := gitserver.Start(ctx, root, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if err := server.Create(ctx, "fleet"); err != nil {
		t.Fatal(err)
	}
	if err := server.Create(ctx, "fleet"); err != nil {
		t.Errorf("creating it again: %v", err)
	}

	work, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	run := func(dir string, args ...string) string {
		t.Helper()
		out, err := gitserver.Git(ctx, dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run(work, "clone", "--quiet", server.URL("fleet"), ".")
	if err := os.WriteFile(filepath.Join(work, "a.txt"), noise(3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	run(work, "add", ".")
	run(work, "commit", "--quiet", "-m", "a")
	run(work, "push", "--quiet", "origin", "HEAD:main")
	run("", "clone", "--quiet", server.URL("fleet"), clone)
	if got, want := run(clone, "rev-parse", "HEAD"), run(work, "rev-parse", "HEAD"); got != want {
		t.Errorf("the clone stands at %s, pushed was %s", got, want)
	}

	server.OutOfOrder(true)
	if _, err := gitserver.Git(ctx, clone, "fetch", "origin"); err == nil {
		t.Error("a server out of order was fetched from")
	}
}
