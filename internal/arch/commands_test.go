package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOneFilePerCommand: a command is found by its name, and is alone in its file.
func TestOneFilePerCommand(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.ImportPath, "cmd") {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatalf("parse %s: %v", name, err)
			}
			if name == "commands.go" { // what several commands have in common
				continue
			}
			base := strings.TrimSuffix(name, ".go")
			for _, word := range words(file) {
				if userOf(p.ImportPath) == module+"/cmd/"+word { // the program itself
					continue
				}
				if as := strings.ReplaceAll(word, "-", "_"); base != as && !strings.HasSuffix(base, "_"+as) {
					t.Errorf("%s/%s: the command %s belongs in a file of that name", p.ImportPath, name, word)
				}
			}
		}
	}
}

// words are the names of the commands that a file defines, where it says them.
func words(file *ast.File) []string {
	var out []string
	for _, use := range textsOf(file, func(typ string) bool { return typ == "Command" }, "Use") {
		word, _, _ := strings.Cut(use, " ")
		out = append(out, word)
	}
	return out
}

// textsOf are the texts that a file gives to a field of the literals of some types, which
// other packages define.
func textsOf(file *ast.File, wanted func(typ string) bool, name string) []string {
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if typ, ok := literal.Type.(*ast.SelectorExpr); !ok || !wanted(typ.Sel.Name) {
			return true
		}
		for _, element := range literal.Elts {
			field, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, isName := field.Key.(*ast.Ident)
			value, isText := field.Value.(*ast.BasicLit)
			if isName && isText && key.Name == name {
				text, _ := strconv.Unquote(value.Value)
				out = append(out, text)
			}
		}
		return true
	})
	return out
}
