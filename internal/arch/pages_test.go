package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// namedTest is a test or fuzz target that a page names.
	namedTest = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	// declaredTest is the declaration of one.
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// TestPagesNameTestsThatExist: the pages below docs/ prove what they promise by the names of tests, which a
// rename must not leave behind.
func TestPagesNameTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	declared := map[string]bool{}
	each(t, root, "_test.go", func(_ string, text []byte) {
		for _, m := range declaredTest.FindAllSubmatch(text, -1) {
			declared[string(m[1])] = true
		}
	})
	named := 0
	each(t, filepath.Join(root, "docs"), ".md", func(path string, text []byte) {
		for _, name := range namedTest.FindAllString(string(text), -1) {
			named++
			if !declared[name] {
				t.Errorf("%s names %s, and there is no such test: name the one that proves it now", path, name)
			}
		}
	})
	if named < 100 {
		t.Errorf("the pages name %d tests, want at least 100: is the pattern right?", named)
	}
}

// each calls f with the path and the content of each file below dir whose name has the suffix.
func each(t *testing.T, dir, suffix string, f func(path string, text []byte)) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f(path, text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
