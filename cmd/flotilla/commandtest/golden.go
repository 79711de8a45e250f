package commandtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Golden returns what compares a text with a file below a folder, and rewrites the
// file under the flag -update. The flag is defined by the call, which must come once
// and before flags are read: it is for a variable of the package that is tested.
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
