package fluxfields_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/flotilla-io/flotilla/"
	flux   = "github.com/fluxcd/"
)

// code is what the loops' packages, and those of Flux that they use, do with fields of structs. A field,
// a function and a method have a name each: its package's path, its type if it has one, and its own.
type code struct {
	importer types.Importer
	// functions by the package that they are in.
	functions map[string][]function
}

// function is what a function reads, and which functions of Flux's it calls.
type function struct {
	name         string
	reads, calls map[string]bool
}

type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// load reads the code of all loops, and of the decisions that they call.
func load(t *testing.T) *code {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles",
		module+"reconciler/...", module+"sources/...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	var list []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read what go list prints: %v", err)
		}
		exports[p.ImportPath] = p.Export
		if within(p.ImportPath, module+"reconciler") || within(p.ImportPath, module+"sources") || within(p.ImportPath, module+"policies") || strings.HasPrefix(p.ImportPath, flux) {
			list = append(list, p)
		}
	}
	fset := token.NewFileSet()
	c := &code{functions: map[string][]function{}}
	c.importer = importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range list {
		if c.functions[p.ImportPath], err = read(fset, c.importer, p); err != nil {
			t.Fatalf("read %s: %v", p.ImportPath, err)
		}
	}
	return c
}

func within(path, place string) bool { return path == place || strings.HasPrefix(path, place+"/") }

// read returns what the functions of a package do. Generated ones are left out: they copy all fields alike.
func read(fset *token.FileSet, from types.Importer, p goPackage) ([]function, error) {
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: from}
	if _, err := config.Check(p.ImportPath, fset, files, info); err != nil {
		return nil, err
	}
	var out []function
	for _, file := range files {
		if ast.IsGenerated(file) {
			continue
		}
		for _, decl := range file.Decls {
			f := function{reads: map[string]bool{}, calls: map[string]bool{}}
			if declared, ok := decl.(*ast.FuncDecl); ok {
				f.name = nameOf(info.Defs[declared.Name])
			}
			f.inspect(decl, info)
			out = append(out, f)
		}
	}
	return out, nil
}

// look notes which fields a declaration reads, and what of Flux's it calls.
func (f function) inspect(decl ast.Decl, info *types.Info) {
	written := map[ast.Expr]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				written[left] = n.Tok == token.ASSIGN
			}
		case *ast.SelectorExpr:
			if sel := info.Selections[n]; sel != nil && sel.Kind() == types.FieldVal && !written[n] {
				f.reads[fieldOf(sel)] = true
			}
		case *ast.Ident:
			if called, ok := info.Uses[n].(*types.Func); ok && called.Pkg() != nil && strings.HasPrefix(called.Pkg().Path(), flux) {
				f.calls[nameOf(called)] = true
			}
		}
		return true
	})
}

// nameOf names a function, or a method by its receiver.
func nameOf(obj types.Object) string {
	f, ok := obj.(*types.Func)
	if !ok {
		return ""
	}
	if recv := f.Signature().Recv(); recv != nil {
		return typeName(recv.Type()) + "." + f.Name()
	}
	return f.Pkg().Path() + "." + f.Name()
}

// fieldOf names the field that a selector ends at, which may be one of an embedded struct.
func fieldOf(sel *types.Selection) string {
	typ := sel.Recv()
	for _, i := range sel.Index()[:len(sel.Index())-1] {
		typ = structOf(typ).Field(i).Type()
	}
	return typeName(typ) + "." + sel.Obj().Name()
}

func typeName(typ types.Type) string {
	if pointer, ok := types.Unalias(typ).(*types.Pointer); ok {
		typ = pointer.Elem()
	}
	if named, ok := types.Unalias(typ).(*types.Named); ok && named.Obj().Pkg() != nil {
		return named.Obj().Pkg().Path() + "." + named.Obj().Name()
	}
	return typ.String()
}

// structOf returns the struct that a field of the API, or its entries, are; nil if they are none.
func structOf(typ types.Type) *types.Struct {
	for {
		switch under := typ.Underlying().(type) {
		case *types.Pointer:
			typ = under.Elem()
		case *types.Slice:
			typ = under.Elem()
		case *types.Struct:
			return under
		default:
			return nil
		}
	}
}

// reads returns the fields that are read below these folders, by themselves or by what they call of Flux's.
func (c *code) reads(folders ...string) map[string]bool {
	of := map[string]function{}
	var todo []function
	for path, functions := range c.functions {
		for _, f := range functions {
			if strings.HasPrefix(path, flux) {
				of[f.name] = f
			} else if slices.ContainsFunc(folders, func(folder string) bool { return within(path, module+folder) }) {
				todo = append(todo, f)
			}
		}
	}
	out, done := map[string]bool{}, map[string]bool{}
	for len(todo) > 0 {
		f := todo[0]
		todo = todo[1:]
		maps.Copy(out, f.reads)
		for name := range f.calls {
			if !done[name] {
				done[name] = true
				todo = append(todo, of[name])
			}
		}
	}
	return out
}

// fields returns the fields of Go types on the way to one of the API, such as "spec.images[].name".
func (c *code) fields(pkg, kind, path string) ([]string, error) {
	from, err := c.importer.Import(pkg)
	if err != nil {
		return nil, err
	}
	obj := from.Scope().Lookup(kind)
	if obj == nil {
		return nil, fmt.Errorf("%s has no type %s", pkg, kind)
	}
	typ := obj.Type()
	var out []string
	for name := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ""), ".") {
		owner, field := tagged(typ, name)
		if field == nil {
			return nil, fmt.Errorf("%s has no field for %s of %s", typ, name, path)
		}
		out = append(out, typeName(owner)+"."+field.Name())
		typ = field.Type()
	}
	return out, nil
}

// tagged returns the field that has a name in JSON, and the struct that it is of, which may be an inlined one.
func tagged(typ types.Type, name string) (types.Type, *types.Var) {
	for {
		if slice, ok := types.Unalias(typ).(*types.Slice); ok {
			typ = slice.Elem()
			continue
		}
		if pointer, ok := types.Unalias(typ).(*types.Pointer); ok {
			typ = pointer.Elem()
			continue
		}
		break
	}
	fields := structOf(typ)
	if fields == nil {
		return nil, nil
	}
	for i := range fields.NumFields() {
		tag, options, _ := strings.Cut(reflect.StructTag(fields.Tag(i)).Get("json"), ",")
		switch {
		case tag == name:
			return typ, fields.Field(i)
		case options == "inline":
			if owner, field := tagged(fields.Field(i).Type(), name); field != nil {
				return owner, field
			}
		}
	}
	return nil, nil
}
