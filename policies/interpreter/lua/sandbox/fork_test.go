package sandbox

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pmezard/go-difflib/difflib"
)

// The folder of the forked VM, and the module that it is a fork of.
const (
	fork        = "../../../../third_party/gopher-lua"
	upstream    = "github.com/yuin/gopher-lua@v1.1.2"
	upstreamSum = "h1:yF/FjE3hD65tBbt0VXLE13HWS9h34fdzJmrWRXwobGA="
)

// TestFork checks that the fork differs from upstream only in what its README
// names, and only a little.
func TestFork(t *testing.T) {
	ours, theirs := files(t, fork), files(t, upstreamDir(t))
	var added, changed []string
	lines := 0
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		was, known := theirs[name]
		switch {
		case !known:
			added = append(added, name)
		case was != ours[name]:
			changed = append(changed, name)
			lines += difference(t, name, was, ours[name])
		}
	}
	if diff := cmp.Diff([]string{"flotilla.go"}, added); diff != "" {
		t.Errorf("files that upstream does not have (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"alloc.go", "go.mod", "utils.go"}, changed); diff != "" {
		t.Errorf("files that differ from upstream's (-want +got):\n%s", diff)
	}
	if lines > 100 {
		t.Errorf("%d lines differ from upstream's", lines)
	}
	if n := strings.Count(ours["flotilla.go"], "\n"); n > 100 {
		t.Errorf("flotilla.go has %d lines", n)
	}
	t.Logf("%d lines differ from upstream's", lines)
}

// TestNothingUnsafe checks that neither the sandbox nor its VM gets around Go's
// type safety.
func TestNothingUnsafe(t *testing.T) {
	around := regexp.MustCompile(`(?m)"unsafe"|^//go:linkname|^#include`)
	for _, dir := range []string{fork, "."} {
		for name, text := range files(t, dir) {
			if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && around.MatchString(text) {
				t.Errorf("%s/%s: %q", dir, name, around.FindString(text))
			}
		}
	}
}

// files returns the contents of the files in a folder, by path, without its
// Markdown pages.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".md" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// upstreamDir returns the folder of upstream's module. It skips the test where
// the module was never downloaded and the module proxy cannot be reached.
func upstreamDir(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", upstream)
	cmd.Dir = t.TempDir() // outside this module, whose go.mod may replace upstream
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("%s cannot be fetched: %v\n%s", upstream, err, out)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != upstreamSum {
		t.Fatalf("the sum of %s is %s, want %s", upstream, module.Sum, upstreamSum)
	}
	return module.Dir
}

// difference logs how a file differs, and returns the number of lines that do.
func difference(t *testing.T, name, was, is string) int {
	t.Helper()
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(was), B: difflib.SplitLines(is), FromFile: "upstream/" + name, ToFile: name, Context: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text)
	n := 0
	for _, line := range strings.Split(text, "\n") {
		header := strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---")
		if !header && (strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-")) {
			n++
		}
	}
	return n
}
