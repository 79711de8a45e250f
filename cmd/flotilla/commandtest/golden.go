package commandtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Golden returns a function that compares a text with a file in a folder, and rewrites the
// file if the flag -update is set. Golden defines that flag, so it must be called once and
// before flags are parsed: call it to initialize a variable of the package under test.
func Golden(dir string) func(t testing.TB, name, got string) {
	update := flag.Bool("update", false, "rewrite golden files")
	return func(t testing.TB, name, got string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
