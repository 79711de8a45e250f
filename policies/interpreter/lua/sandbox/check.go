package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// MaxSource is how long a script may be, in bytes. It bounds how deeply a script
// can be nested, and so the stack that the compiler uses. It also bounds the
// compiler's time, which compares each constant with all that came before.
const MaxSource = 64 << 10

var (
	// ErrTooLong means that a script has more than MaxSource bytes.
	ErrTooLong = fmt.Errorf("has more than %d bytes", MaxSource)
	// ErrUndefined means that a script compiles, but does not define the function
	// that is called.
	ErrUndefined = errors.New("the function is not defined")
)

// Check compiles source and returns an error unless it defines function:
// ErrTooLong, ErrUndefined, or the compiler's message on one line.
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

// defines reports whether a statement assigns to a global of the name.
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
