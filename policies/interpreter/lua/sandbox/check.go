package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// MaxSource is how many bytes a script may have. It bounds how deep one can be
// nested, and with that the stack that compiling it takes, and the time: the
// compiler looks for each constant among all before it.
const MaxSource = 64 << 10

var (
	// ErrTooLong means that a script has more than MaxSource bytes.
	ErrTooLong = fmt.Errorf("has more than %d bytes", MaxSource)
	// ErrUndefined means that a script compiles, but does not define the function
	// that is called.
	ErrUndefined = errors.New("the function is not defined")
)

// Check compiles source and reports whether it defines function. Errors: ErrTooLong,
// ErrUndefined, or what the compiler says, on one line.
func Check(source, function string) error {
	chunk, _, err := chunkOf("script", source)
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(chunk, func(s ast.Stmt) bool { return defines(s, function) }):
		return ErrUndefined
	default:
		return nil
	}
}

// defines reports whether a statement gives a global of the name a value.
func defines(s ast.Stmt, name string) bool {
	is := func(e ast.Expr) bool {
		ident, ok := e.(*ast.IdentExpr)
		return ok && ident.Value == name
	}
	switch s := s.(type) {
	case *ast.FuncDefStmt:
		return s.Name.Receiver == nil && is(s.Name.Func)
	case *ast.AssignStmt:
		return slices.ContainsFunc(s.Lhs, is)
	default:
		return false
	}
}
