package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// station is a row of the walk in docs/develop.md: a file, and a function in it.
var station = regexp.MustCompile("(?m)^\\| (\\d+) \\| .* \\| `([a-z/]+\\.go)` \\| `(\\w+)` \\|$")

// TestTheWalk: what docs/develop.md says of the way of a change can be found by its name.
func TestTheWalk(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "develop.md"))
	if err != nil {
		t.Fatal(err)
	}
	stations := station.FindAllStringSubmatch(string(page), -1)
	if len(stations) < 10 || len(stations) > 20 {
		t.Fatalf("the walk has %d stations, want 10 to 20", len(stations))
	}
	for _, s := range stations {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", s[2]), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("station %s: %v", s[1], err)
			continue
		}
		found := false
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == s[3] {
				found = true
			}
		}
		if !found {
			t.Errorf("station %s: there is no function %s in %s", s[1], s[3], s[2])
		}
	}
}
