package expression

import (
	"errors"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxWork is what one call may take, in bytes that it handles.
	maxWork = 8 << 20
	// maxElements is how many elements a list may have that is made of two.
	maxElements = 1 << 20
	// perNode is what a value takes beside its bytes.
	perNode = 16
	// workPerCost is how much of that costs one unit.
	workPerCost = 16
	// copies is how often functions that go through a text by its characters do so.
	copies = 4
	// perPart is what each character of a text takes that is split.
	perPart = 32
	// perNumber is how much longer than itself a value may be when it is written.
	perNumber = 8
)

var errTooMuch = errors.New("one call handles too much")

// guard puts a check before each call that is made in an evaluation.
func (l *language) guard(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := step.(interpreter.InterpretableCall)
	if !ok {
		return step, nil
	}
	impl := l.implementation(call.Function())
	if impl == nil || len(call.Args()) == 0 {
		return step, nil
	}
	name := call.Function()
	return interpreter.NewCall(call.ID(), name, call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if work(name, args) > maxWork {
			return types.WrapErr(errTooMuch)
		}
		return impl(args...)
	}), nil
}

// implementation returns what a function does; nil for what is no plain function
// of its arguments.
func (l *language) implementation(name string) functions.FunctionOp {
	switch name {
	case operators.Equals:
		return func(args ...ref.Val) ref.Val { return types.Equal(args[0], args[1]) }
	case operators.NotEquals:
		return func(args ...ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }
	}
	overload := l.calls[name]
	if overload == nil || overload.NonStrict {
		return nil
	}
	return func(args ...ref.Val) ref.Val {
		if overload.OperandTrait != 0 && !args[0].Type().HasTrait(overload.OperandTrait) {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		switch {
		case len(args) == 1 && overload.Unary != nil:
			return overload.Unary(args[0])
		case len(args) == 2 && overload.Binary != nil:
			return overload.Binary(args[0], args[1])
		case overload.Function != nil:
			return overload.Function(args...)
		default:
			return types.MaybeNoSuchOverloadErr(args[0])
		}
	}
}

// estimator says what a call costs.
type estimator struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (estimator) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1 + work(function, args)/workPerCost)
	return &cost
}

// work returns about how many bytes a call goes through or makes, at
// most a little more than maxWork.
func work(function string, args []ref.Val) int {
	switch function {
	case operators.Equals, operators.NotEquals:
		return weigh(args...)
	case operators.In:
		if _, isMap := args[len(args)-1].(traits.Mapper); isMap {
			return weigh(args[0])
		}
		return weigh(args...)
	case operators.Add:
		if size := elements(args[:1]) + elements(args[1:]); size > maxElements {
			return maxWork + 1
		}
	case "matches", "indexOf", "lastIndexOf":
		if len(args) > 1 {
			return product(length(args[0])+1, length(args[1])+1)
		}
	case "replace":
		if len(args) > 2 {
			return replaced(length(args[0]), length(args[1]), length(args[2]))
		}
	case "split":
		return product(length(args[0])+1, perPart)
	case "join", "format":
		return product(weigh(args...)+elements(args)*separator(function, args), perNumber)
	case "sets.contains", "sets.equivalent", "sets.intersects":
		if len(args) > 1 {
			return product(2*weigh(args[0])/perNode, weigh(args[1]))
		}
	}
	total := 1
	for _, arg := range args {
		total = min(total+copies*length(arg), maxWork+1)
	}
	return total
}

// replaced is how long a text may become in which something is replaced.
func replaced(text, old, by int) int {
	times := text + 1
	if old > 0 {
		times = text / old
	}
	return min(copies*text+product(times, by), maxWork+1)
}

// separator is what stands between the elements of a list that is joined.
func separator(function string, args []ref.Val) int {
	if function == "join" && len(args) > 1 {
		return min(length(args[1]), maxWork)
	}
	return 0
}

// elements counts those of the list among the arguments.
func elements(args []ref.Val) int {
	for _, arg := range args {
		if list, ok := arg.(traits.Lister); ok {
			size, _ := list.Size().(types.Int)
			return min(int(size), maxWork)
		}
	}
	return 0
}

func product(a, b int) int {
	if a > 0 && b > maxWork/a {
		return maxWork + 1
	}
	return a * b
}

// length is that of a text, 0 for anything else.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	default:
		return 0
	}
}

// weigh counts the bytes of values, each as often as it is reached.
func weigh(values ...ref.Val) int {
	left := maxWork
	for _, v := range values {
		if left = weighInto(v, left); left < 0 {
			break
		}
	}
	return maxWork - left
}

// weighInto returns what is left of a weight after a value is taken from it; it is
// below zero if that is not enough, and not all of the value was looked at then.
func weighInto(v ref.Val, left int) int {
	left -= perNode + length(v)
	switch v := v.(type) {
	case *types.Optional:
		if v.HasValue() {
			left = weighInto(v.GetValue(), left)
		}
	case traits.Mapper:
		for it := v.Iterator(); left >= 0 && it.HasNext() == types.True; {
			key := it.Next()
			left = weighInto(v.Get(key), weighInto(key, left))
		}
	case traits.Lister:
		for it := v.Iterator(); left >= 0 && it.HasNext() == types.True; {
			left = weighInto(it.Next(), left)
		}
	}
	return left
}
