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
	maxMethods          = 15
	maxMethodsExcepted  = 20 // of the types in manyMethods
	maxStructFields     = 16
	maxInterfaceMethods = 5
	maxParameters       = 6
)

// exceptions are findings that are accepted for a while, each with its reason.
// The list is meant to stay empty.
var exceptions = map[string]string{}

// manyMethods are types that may have more than maxMethods, each with its reason: they
// are an interface of others, or one thing with a name for each of its parts.
var manyMethods = map[string]string{
	// As many as an interface of others asks for.
	"internal/fairqueue.Queue":            "is controller-runtime's PriorityQueue, which asks for thirteen",
	"sources/build.memory":                "is kustomize's FileSystem, which asks for thirteen",
	"policies/interpreter/lua/sandbox.vm": "is the context of a Lua state, and has a method for each thing that a call is charged for",
	"reconciler/templatestore.Store":      "is a Runnable of the manager beside what it is asked and what it is fed",
	"reconciler/orphans.Reconciler":       "is a members.Handler, whose four events start looks, beside look and removal",
	"cmd/flotilla/inspection.getter":      "is kubectl's get: each step of that that differs for members is one method",
	"internal/members.Member":             "is the one way to a cluster: each caller takes the few methods that its own interface names",
	"internal/members/informer.Informer":  "is the whole of what is seen of a member: each caller takes few methods of it",

	// Lists: one short method for each field, file, page or question, and no state between them.
	"controlplane.ControlPlane":               "answers with one method each for what its callers need to know, beside build and run",
	"controlplane/pki.Store":                  "has one method for the path of each file that the server is given",
	"cmd/flotilla.explainReader":              "has one method for each kind that an explanation is made from",
	"cmd/flotilla/fleet.Flags":                "has one method for each way in which a command uses or completes the flags",
	"cmd/flotilla/overview.tracer":            "has one method for each kind on the way from a commit to a pod",
	"cmd/flotilla/overview/situation.Survey":  "takes each kind of object by one method",
	"e2e/chaos/history.judge":                 "has one method for each invariant, and for what several of them ask",
	"e2e/fleet.Fleet":                         "is what all whole-system tests write by: verbs of a test",
	"bench.bench":                             "is what all rows measure by: verbs of a measurement",
	"policies/explain.explainer":              "has one method for each place on the way where something may stop",
	"sources/build.inspection":                "has one method for each form in which a kustomization names files",
	"cmd/flotilla/change/promotion.Promotion": "is one promotion: what it finds, rehearses, carries and rolls back",

	// One lock: all methods look at the same few fields, which nothing else may touch.
	"agent/diskcache.kindStore":           "is one file store and what the cache has of it, under one lock",
	"agent/hubconn.Connection":            "is one answer, whether the hub is there, and all who ask, wait for or change it",
	"internal/members/informer.kindWatch": "is one watch: what its list, its events and its pauses change is one state",
	"internal/setback.Keeper":             "is one history of a hub, under one lock, with all who read and write it",
	"internal/setback.Checker":            "is one verdict of a member about its hub, under one lock",
	"internal/tenure.MemberLease":         "is one Lease, under one lock: who holds it, who competes for it, what it lets through",
	"internal/tenure.Tenure":              "is one turn of a lease, under one lock, from its begin to why it is over",
	"sources/artifact.Store":              "is one directory, under one lock: what is put in, named, served and swept",
	"controlplane/proxy.Proxy":            "is one table of members, under one lock, and the way that a request takes through it",
	"reconciler/decider.Decider":          "is what all loops that place ask, and what they say has changed",
	"reconciler/decider.reservations":     "is one table, under one lock, which decisions and reports change",

	// Commands: the steps of one call in their order.
	"cmd/flotilla-agent/program.agent":      "is the start of the agent, step by step: what one step makes the next ones use",
	"cmd/flotilla/registration.registering": "is one call of register, step by step",
	"internal/join.UnjoinOptions":           "is one call of unjoin, step by step",
	"sources/git.Remote":                    "speaks one protocol over two transports, and the notes beside it: notes can be cut off",
}

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

func TestManyMethods(t *testing.T) {
	counts := map[string]int{}
	for _, p := range packages(t) {
		for name, count := range methodsOf(t, p) {
			counts[keyOf(p, name)] = count
		}
	}
	for key := range manyMethods {
		if counts[key] <= maxMethods {
			t.Errorf("%s has %d methods by now: remove it from manyMethods", key, counts[key])
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
	return newMeter(t, p).findings
}

// methodsOf counts the methods of a package's types.
func methodsOf(t *testing.T, p goPackage) map[string]int {
	t.Helper()
	return newMeter(t, p).methods
}

func newMeter(t *testing.T, p goPackage) *meter {
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
		if name != "doc.go" { // what a package says of itself may be as long as it helps
			total += lines
		}
		m.limit(name, "lines", lines, maxFileLines)
		m.file(file)
	}
	m.limit("package", "lines", total, maxPackageLines)
	for name, count := range m.methods {
		most := maxMethods
		if manyMethods[keyOf(p, name)] != "" {
			most = maxMethodsExcepted
		}
		m.limit(name, "methods", count, most)
	}
	return m
}

// keyOf names a type, a function or a file of a package.
func keyOf(p goPackage, what string) string {
	return strings.TrimPrefix(p.ImportPath, module+"/") + "." + what
}

func (m *meter) limit(what, unit string, got, most int) {
	if got > most {
		m.report(what, "has %d %s, at most %d are allowed", got, unit, most)
	}
}

func (m *meter) report(what, format string, args ...any) {
	key := keyOf(m.pkg, what)
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
