package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The hard stops. What a function or file should look like lies far below.
const (
	maxFunctionLines    = 70
	maxReconcileLines   = 60
	maxFileLines        = 500
	maxPackageLines     = 2500
	maxMethods          = 20
	maxStructFields     = 16
	maxInterfaceMethods = 5
	maxParameters       = 6
)

// exceptions are findings that are accepted for a while, each with its reason.
// The list is meant to stay empty.
var exceptions = map[string]string{}

// bannedNames are package names that say nothing about what is inside.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib"}

func TestPackageDocs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s says nothing about itself: give it a doc.go", p.ImportPath)
		}
		if slices.Contains(bannedNames, p.Name) {
			t.Errorf("%s: the name %q says nothing: name the package by what it holds", p.ImportPath, p.Name)
		}
	}
}

func TestBudgets(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, finding := range measure(t, p) {
			if _, accepted := exceptions[finding.key]; accepted {
				used[finding.key] = true
				continue
			}
			t.Error(finding.text)
		}
	}
	for key := range exceptions {
		if !used[key] {
			t.Errorf("the exception %q is no longer needed: remove it", key)
		}
	}
}

type finding struct{ key, text string }

// meter collects what is too large, or out of place, in one package.
type meter struct {
	pkg      goPackage
	fset     *token.FileSet
	methods  map[string]int
	findings []finding
}

func measure(t *testing.T, p goPackage) []finding {
	t.Helper()
	m := &meter{pkg: p, fset: token.NewFileSet(), methods: map[string]int{}}
	total := 0
	for _, name := range p.GoFiles {
		if strings.HasPrefix(name, "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(m.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("parse %s: %v", name, err)
		}
		lines := m.fset.Position(file.End()).Line
		total += lines
		m.limit(name, "lines", lines, maxFileLines)
		m.file(file)
	}
	m.limit("package", "lines", total, maxPackageLines)
	for name, count := range m.methods {
		m.limit(name, "methods", count, maxMethods)
	}
	return m.findings
}

func (m *meter) limit(what, unit string, got, most int) {
	if got > most {
		m.report(what, "has %d %s, at most %d are allowed", got, unit, most)
	}
}

func (m *meter) report(what, format string, args ...any) {
	key := strings.TrimPrefix(m.pkg.ImportPath, module+"/") + "." + what
	m.findings = append(m.findings, finding{key: key, text: key + " " + fmt.Sprintf(format, args...)})
}

func (m *meter) file(file *ast.File) {
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			m.function(fn)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			m.typ(n)
		case *ast.SelectorExpr:
			m.selector(n)
		}
		return true
	})
}

func (m *meter) function(fn *ast.FuncDecl) {
	name := fn.Name.Name
	if fn.Recv != nil {
		receiver := receiverOf(fn)
		m.methods[receiver]++
		name = receiver + "." + name
	}
	lines := m.fset.Position(fn.End()).Line - m.fset.Position(fn.Pos()).Line + 1
	most := maxFunctionLines
	if fn.Name.Name == "Reconcile" {
		most = maxReconcileLines
	}
	m.limit(name, "lines", lines, most)
	m.limit(name, "parameters", parameters(fn.Type), maxParameters)
	if fn.Recv == nil && fn.Name.Name == "init" && !within(m.pkg.ImportPath, "api") {
		m.report(name, "runs at import: only api/ registers types that way")
	}
}

func (m *meter) typ(spec *ast.TypeSpec) {
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		if !within(m.pkg.ImportPath, "api") {
			m.limit(spec.Name.Name, "fields", typ.Fields.NumFields(), maxStructFields)
		}
	case *ast.InterfaceType:
		m.limit(spec.Name.Name, "methods", typ.Methods.NumFields(), maxInterfaceMethods)
	}
}

// selector finds contexts made out of nothing and reads of the clock.
func (m *meter) selector(sel *ast.SelectorExpr) {
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return
	}
	call := pkg.Name + "." + sel.Sel.Name
	program := within(m.pkg.ImportPath, "cmd") || within(m.pkg.ImportPath, "bench") || within(m.pkg.ImportPath, "hack")
	switch {
	case (call == "context.Background" || call == "context.TODO") && !program:
		m.report(call, "in %s: take the caller's context", m.fset.Position(sel.Pos()))
	case (call == "time.Now" || call == "time.Since") && within(m.pkg.ImportPath, "policies"):
		m.report(call, "in %s: a decision takes the time as a value", m.fset.Position(sel.Pos()))
	case call == "time.Sleep":
		m.report(call, "in %s: wait for what happens, not for time", m.fset.Position(sel.Pos()))
	}
}

// parameters counts what a function takes besides its context.
func parameters(typ *ast.FuncType) int {
	count := typ.Params.NumFields()
	if count == 0 {
		return 0
	}
	if sel, ok := typ.Params.List[0].Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
		count--
	}
	return count
}

func receiverOf(fn *ast.FuncDecl) string {
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return "?"
		}
	}
}
