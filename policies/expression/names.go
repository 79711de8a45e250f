package expression

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// maxName is how much of an unknown name an error quotes.
const maxName = 100

// reader looks for names that nothing has. It goes through an expression once: the
// library's own check compares types as well, which takes the more the deeper they
// are nested, and a thousand characters can hold it for seconds.
type reader struct {
	language *language
	known    map[string]int // how often a name has a meaning, here
	unknown  string
}

// undeclared returns a name, of a variable or a function, that an expression uses and
// that neither the language nor its variables have; empty if there is none.
func (l *language) undeclared(tree ast.Expr, variables []string) string {
	r := reader{language: l, known: map[string]int{}}
	for _, name := range variables {
		r.known[name]++
	}
	r.read(tree)
	return r.unknown
}

func (r *reader) read(e ast.Expr) {
	if r.unknown != "" {
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		r.name(e.AsIdent())
	case ast.SelectKind:
		if !r.isType(qualified(e)) {
			r.read(e.AsSelect().Operand())
		}
	case ast.CallKind:
		r.call(e.AsCall())
	case ast.ListKind:
		r.all(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.all(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		r.structure(e.AsStruct().TypeName())
		for _, field := range e.AsStruct().Fields() {
			r.read(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		r.comprehension(e.AsComprehension())
	}
}

func (r *reader) all(list ...ast.Expr) {
	for _, e := range list {
		r.read(e)
	}
}

func (r *reader) name(name string) {
	if name = strings.TrimPrefix(name, "."); r.known[name] == 0 && !r.isType(name) {
		r.unknown = name
	}
}

// structure looks up the type of an object that an expression makes.
func (r *reader) structure(name string) {
	if _, found := r.language.env.CELTypeProvider().FindStructType(strings.TrimPrefix(name, ".")); !found {
		r.unknown = name
	}
}

// isType reports whether a name is one of the language's: types are values there.
func (r *reader) isType(name string) bool {
	if name == "" {
		return false
	}
	_, found := r.language.env.CELTypeProvider().FindIdent(name)
	return found
}

func (r *reader) call(call ast.CallExpr) {
	name := call.FunctionName()
	if call.IsMemberFunction() {
		if within := qualified(call.Target()); within == "" || !r.language.env.HasFunction(within+"."+name) {
			r.read(call.Target())
		} else {
			name = within + "." + name
		}
	}
	if r.unknown == "" && !r.language.env.HasFunction(name) {
		r.unknown = name
	}
	r.all(call.Args()...)
}

// comprehension reads a loop, in whose parts more names have a meaning than outside.
func (r *reader) comprehension(c ast.ComprehensionExpr) {
	r.all(c.IterRange(), c.AccuInit())
	r.known[c.AccuVar()]++
	r.known[c.IterVar()]++
	if c.HasIterVar2() {
		r.known[c.IterVar2()]++
	}
	r.all(c.LoopCondition(), c.LoopStep())
	r.known[c.IterVar()]--
	if c.HasIterVar2() {
		r.known[c.IterVar2()]--
	}
	r.read(c.Result())
	r.known[c.AccuVar()]--
}

// qualified returns the name of several words that an expression is; empty if it is none.
func qualified(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		if of := qualified(e.AsSelect().Operand()); of != "" && !e.AsSelect().IsTestOnly() {
			return of + "." + e.AsSelect().FieldName()
		}
	}
	return ""
}

// errUndeclared says which name it is.
func errUndeclared(name string) error {
	return fmt.Errorf("%w: undeclared reference to '%s'", ErrInvalid, excerpt.Runes(name, maxName))
}
