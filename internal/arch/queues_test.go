package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// ofNoTenant are the loops whose keys belong to no tenant, and what they are.
var ofNoTenant = map[string]string{
	"reconciler/agents":      "clusters",
	"reconciler/cluster":     "clusters",
	"reconciler/massfailure": "clusters",
	"reconciler/namespace":   "namespaces",
	"reconciler/rebalance":   "rebalancers, of administrators",
	"reconciler/remedy":      "clusters",
	"reconciler/silences":    "clusters",
	"reconciler/taintpolicy": "clusters",
	"reconciler/unifiedauth": "clusters and what rights they have",
}

// TestLoopsAreSharedByNamespace: whoever works for tenants has them take turns.
func TestLoopsAreSharedByNamespace(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatalf("parse %s: %v", name, err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if from, ok := sel.X.(*ast.Ident); !ok || from.Name != "fairqueue" || sel.Sel.Name != "New" {
					return true
				}
				if used[room] = true; ofNoTenant[room] == "" {
					t.Errorf("%s/%s: fairqueue.New lets one namespace hold all others up; use fairqueue.ByNamespace or fairqueue.By", room, name)
				}
				return true
			})
		}
	}
	for room := range ofNoTenant {
		if !used[room] {
			t.Errorf("%s does not use fairqueue.New: remove it here", room)
		}
	}
}
