package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// What callers branch on. An expression is foreign text that has not changed since
// it was refused: ErrInvalid and ErrCost come again, ErrTime may not, ErrFailed
// depends on the objects.
var (
	// ErrInvalid says that a text is no expression, or one that is too large.
	ErrInvalid = errors.New("invalid expression")
	// ErrCost says that an expression, or all of a Budget, cost more than is allowed.
	ErrCost = errors.New("the expression costs more than is allowed")
	// ErrTime says that an expression took longer than is allowed.
	ErrTime = errors.New("the expression takes longer than is allowed")
	// ErrFailed says that an expression has no result for these objects.
	ErrFailed = errors.New("the expression has no result")
)

// Limits bound expressions. Zero fields take the default.
type Limits struct {
	// Size is how many characters an expression may have. Default 10,000. Reading one
	// takes time in proportion to them: some 50 ms for 10,000.
	Size int
	// Cost is what one evaluation may cost, in CEL's units: about one per step, and
	// one per sixteen bytes that are looked at. Default 1,000,000, a tenth of a
	// second.
	Cost uint64
	// Time is how long one evaluation may take. Default 5 s.
	Time time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Size == 0 {
		l.Size = 10_000
	}
	if l.Cost == 0 {
		l.Cost = 1_000_000
	}
	if l.Time == 0 {
		l.Time = 5 * time.Second
	}
	return l
}

const (
	// maxOptional is how often an expression may use optMap and optFlatMap: each
	// doubles what is before it when it is read.
	maxOptional = 6
	// maxGrowth is how many times as large as Size what is doubled so may become.
	maxGrowth = 8
	// maxNesting is how deep an expression may be nested.
	maxNesting = 250
	// maxFault is how much is shown of what is wrong with a text, in characters: a
	// message may quote all of it.
	maxFault = 200
	// readCost is what reading one byte costs, in CEL's units.
	readCost = 50
)

// Budget bounds what several evaluations cost together. It is not for use by
// several goroutines.
type Budget struct{ left uint64 }

// NewBudget returns one of that cost.
func NewBudget(cost uint64) *Budget { return &Budget{left: cost} }

func (b *Budget) take(cost uint64) error {
	if b == nil {
		return nil
	}
	if cost > b.left {
		b.left = 0
		return fmt.Errorf("%w, together with others: make them look at less", ErrCost)
	}
	b.left -= cost
	return nil
}

// Compiler compiles expressions. It is for use by any number of goroutines.
type Compiler struct {
	limits Limits
	// made returns the language, which is made when it is first needed.
	made func() (*language, error)
}

// language is what all expressions have in common.
type language struct {
	env   *cel.Env
	calls map[string]*functions.Overload // by the function's name
}

// NewCompiler returns a Compiler.
func NewCompiler(limits Limits) *Compiler {
	limits = limits.withDefaults()
	return &Compiler{limits: limits, made: sync.OnceValues(func() (*language, error) { return newLanguage(limits) })}
}

func newLanguage(limits Limits) (*language, error) {
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.ParserExpressionSizeLimit(limits.Size),
		cel.ParserRecursionLimit(maxNesting),
		ext.Strings(), ext.Sets(), ext.Encoders(),
	)
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	calls := map[string]*functions.Overload{}
	for name, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err != nil {
			return nil, fmt.Errorf("set up the function %s of expressions: %w", name, err)
		}
		for _, b := range bindings {
			if b.Operator == name {
				calls[name] = b
			}
		}
	}
	return &language{env: env, calls: calls}, nil
}

// Expression is one that was compiled. It is for use by any number of goroutines.
type Expression struct {
	text    string
	limits  Limits
	program cel.Program
}

// Compile reads an expression, on a budget, of which nil has no bounds. With
// variables it is checked that it uses no others; without, they are whatever it is
// given. It ends before it begins if ctx has ended, and takes no longer than Size
// lets it. Errors: ErrInvalid, ErrCost for the budget, and that of a context that
// ended; any other is one of the program.
func (c *Compiler) Compile(ctx context.Context, text string, budget *Budget, variables ...string) (*Expression, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("read an expression: %w", context.Cause(ctx))
	}
	if len(text) > c.limits.Size {
		return nil, fmt.Errorf("%w: it has more than %d characters", ErrInvalid, c.limits.Size)
	}
	doubled := strings.Count(text, "optMap") + strings.Count(text, "optFlatMap")
	if doubled > maxOptional {
		return nil, fmt.Errorf("%w: it uses optMap and optFlatMap more than %d times", ErrInvalid, maxOptional)
	}
	if len(text)<<doubled > maxGrowth*c.limits.Size {
		return nil, fmt.Errorf("%w: it is too long for using optMap and optFlatMap %d times", ErrInvalid, doubled)
	}
	if err := budget.take(uint64(len(text)<<doubled) * readCost); err != nil {
		return nil, err
	}
	l, err := c.made()
	if err != nil {
		return nil, err
	}
	tree, issues := l.env.Parse(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, aboutIssues(issues))
	}
	if len(variables) > 0 {
		if name := l.undeclared(tree.NativeRep().Expr(), variables); name != "" {
			return nil, errUndeclared(name)
		}
	}
	program, err := l.env.Program(tree,
		cel.CustomDecoratorV2(l.guard),
		cel.CostTracking(estimator{}), cel.CostLimit(c.limits.Cost),
		cel.InterruptCheckFrequency(checkEvery),
	)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return &Expression{text: text, limits: c.limits, program: program}, nil
}

// checkEvery is after how many rounds of a loop it is looked whether the context
// has ended.
const checkEvery = 10

// aboutIssues says what is wrong with a text first, and where. What follows is mostly
// of the same cause.
func aboutIssues(issues *cel.Issues) string {
	first := issues.Errors()[0]
	text := excerpt.Runes(strings.Join(strings.Fields(first.Message), " "), maxFault)
	if first.Location == nil || first.Location.Line() < 1 {
		return text
	}
	return fmt.Sprintf("%s (line %d, character %d)", text, first.Location.Line(), first.Location.Column()+1)
}

// Bool evaluates an expression that says yes or no over variables; a nil budget
// has no bounds of its own. Errors: ErrCost, ErrTime, ErrFailed, and that of a
// context that ended.
func (e *Expression) Bool(ctx context.Context, variables map[string]any, budget *Budget) (bool, error) {
	value, err := e.evaluate(ctx, variables, budget)
	if err != nil {
		return false, err
	}
	out, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%w: it says neither true nor false", ErrFailed)
	}
	return bool(out), nil
}

// Text is Bool for an expression whose result is a text.
func (e *Expression) Text(ctx context.Context, variables map[string]any, budget *Budget) (string, error) {
	value, err := e.evaluate(ctx, variables, budget)
	if err != nil {
		return "", err
	}
	out, ok := value.(types.String)
	if !ok {
		return "", fmt.Errorf("%w: what it gives is no text", ErrFailed)
	}
	return string(out), nil
}

func (e *Expression) evaluate(ctx context.Context, variables map[string]any, budget *Budget) (ref.Val, error) {
	if err := budget.take(1); err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeoutCause(ctx, e.limits.Time, ErrTime)
	defer cancel()
	value, details, err := e.program.ContextEval(timed, variables)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("evaluate an expression: %w", context.Cause(ctx))
	}
	if details != nil && details.ActualCost() != nil {
		if err := budget.take(*details.ActualCost()); err != nil {
			return nil, err
		}
	}
	return value, e.explain(err)
}

// explain says what went wrong without any value of the objects.
func (e *Expression) explain(err error) error {
	var cancelled interpreter.EvalCancelledError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &cancelled) || errors.Is(err, errTooMuch) || strings.HasSuffix(err.Error(), errTooMuch.Error()):
		return fmt.Errorf("%w: make it look at less", ErrCost)
	case errors.Is(err, ErrTime):
		return ErrTime
	}
	// What is missing is named only if the expression names it itself: a key may be
	// computed from a value.
	for _, missing := range []string{"no such key: ", "no such attribute(s): "} {
		if _, name, found := strings.Cut(err.Error(), missing); found {
			if name != "" && strings.Contains(e.text, name) {
				return fmt.Errorf("%w: there is no %s", ErrFailed, name)
			}
			return fmt.Errorf("%w: a field that it uses is not there", ErrFailed)
		}
	}
	return fmt.Errorf("%w: what it does cannot be done with the types or values that it finds", ErrFailed)
}

// Value is Bool for an expression whose result is used by others, as one of their variables.
func (e *Expression) Value(ctx context.Context, variables map[string]any, budget *Budget) (any, error) {
	value, err := e.evaluate(ctx, variables, budget)
	if err != nil {
		return nil, err
	}
	return value, nil
}
