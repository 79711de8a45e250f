package refs

import (
	"io/fs"
	"path"
	"testing"
)

// FuzzEntryOf: whatever git lists is a file with a path inside of the tree, or an error.
func FuzzEntryOf(f *testing.F) {
	for _, line := range []string{"100644 blob abc 3\ta/b", "040000 tree abc -\ta", "120000 blob abc 9\tl", "160000 commit abc -\tm", "100755 blob abc 1\tx", "100644 blob abc 3\t../x", "\t", ""} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, name, err := entryOf(line)
		if err == nil && (!fs.ValidPath(name) || e.name != path.Base(name) || e.hash == "") {
			t.Errorf("%q is %q at %q", line, e.name, name)
		}
	})
}
