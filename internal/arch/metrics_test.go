package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed is a row of the table in docs/metrics.md.
var listed = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (?:counter|gauge|histogram) \\|")

// TestMetricsAreListed: whatever a package defines is in docs/metrics.md. Types, labels
// and meanings are held to what is registered by reconciler's TestTheMetricsPage.
func TestMetricsAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, row := range listed.FindAllStringSubmatch(string(page), -1) {
		want[row[1]] = true
	}
	got := map[string]bool{}
	for _, p := range packages(t) {
		if !slices.Contains(p.Imports, "github.com/prometheus/client_golang/prometheus") {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatalf("parse %s: %v", name, err)
			}
			maps.Copy(got, defined(file))
		}
	}
	// Several of one form, made in a loop.
	maps.DeleteFunc(want, func(name string, _ bool) bool { return strings.HasPrefix(name, "cluster_") })
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("figures (-docs/metrics.md +the code):\n%s", diff)
	}
}

// defined are the names that options of Prometheus' client give in a file. Those with a
// subsystem are controller-runtime's own.
func defined(file *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, name := range textsOf(file, func(typ string) bool { return strings.HasSuffix(typ, "Opts") }, "Name") {
		out[name] = true
	}
	return out
}
