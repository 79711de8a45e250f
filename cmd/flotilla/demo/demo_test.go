package demo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/cmd/flotilla/demo"
)

// TestAFolderInUse is refused before anything is started, and stays as it is.
func TestAFolderInUse(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "fleet")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	output := &strings.Builder{}
	err := demo.Run(t.Context(), demo.Options{Flotillad: filepath.Join(dir, "none"), Dir: dir, Out: output, Clock: clock.RealClock{}})
	want := "a demo is in the folder " + dir + " already: end the one that runs there, and remove the folder; or name another by --dir"
	if err == nil || err.Error() != want || output.String() != "" {
		t.Errorf("it says %q and ends with\n%v\nwant\n%s", output, err, want)
	}
	if _, err := os.Stat(tree); err != nil {
		t.Error(err)
	}
}
