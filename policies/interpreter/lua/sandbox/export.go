package sandbox

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// Limits of what a script may return.
const (
	maxDepth  = 64
	maxResult = 2 << 20 // bytes of text, and about as much for numbers
)

var errTooLarge = fmt.Errorf("is larger than %d KiB", maxResult>>10)

// exporter converts what a script returned into values of an object. path leads
// to the value at hand, for errors.
type exporter struct {
	vm   *vm
	size int
	path []string
}

// export returns a copy of what a script returned. like is the value that the
// script was given in its place, or one like it; nil where nothing is known. It
// decides what Lua cannot express: whether an empty table is a list, and which
// integer a number was before Lua rounded it.
func (v *vm) export(x lua.LValue, like any) (any, error) {
	e := &exporter{vm: v}
	out, err := e.value(x, like)
	if err != nil && len(e.path) > 0 {
		return nil, fmt.Errorf("%s: %w", Line(strings.Join(e.path, ".")), err)
	}
	return out, err
}

func (e *exporter) value(x lua.LValue, like any) (any, error) {
	if err := e.take(1, 16); err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case *lua.LNilType:
		return nil, nil
	case lua.LBool:
		return bool(x), nil
	case lua.LNumber:
		return number(float64(x), like)
	case lua.LString:
		if !utf8.ValidString(string(x)) {
			return nil, errors.New("is no text in UTF-8")
		}
		return string(x), e.take(len(x)/textPerStep, len(x))
	case *lua.LTable:
		if len(e.path) >= maxDepth {
			return nil, fmt.Errorf("is nested more than %d deep", maxDepth)
		}
		return e.table(x, like)
	default:
		return nil, fmt.Errorf("is a %s", x.Type())
	}
}

// take adds to the size of the result, and charges the budget for it.
func (e *exporter) take(steps, bytes int) error {
	e.size += bytes
	switch {
	case e.size > maxResult:
		return errTooLarge
	case !e.vm.spend(int64(steps), int64(4*bytes)):
		return e.vm.stopped
	}
	return nil
}

// number returns like where Lua holds it as x, so that large integers and floats
// stay as they were; else an integer where x is one.
func number(x float64, like any) (any, error) {
	switch was := like.(type) {
	case int64:
		if float64(was) == x {
			return was, nil
		}
	case float64:
		if was == x {
			return was, nil
		}
	}
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return nil, fmt.Errorf("is %v, which is no number in an object", x)
	case x == math.Trunc(x) && x >= math.MinInt64 && x < math.MaxInt64:
		return int64(x), nil
	default:
		return x, nil
	}
}

func (e *exporter) table(t *lua.LTable, like any) (any, error) {
	if o, ok := e.vm.origins[t]; ok {
		if !o.filled {
			return e.clone(o.value)
		}
		like = o.value
	}
	if !e.vm.length(t) {
		return nil, e.vm.stopped
	}
	n := t.MaxN()
	switch names := len(t.Names()); {
	case len(t.Others()) > 0:
		return nil, errors.New("is a table whose keys are neither names nor numbers from 1 on")
	case n > 0 && names > 0:
		return nil, errors.New("is a table with names and numbers as keys")
	case names > 0:
		return e.object(t, like)
	case n > 0:
		return e.list(t.Elements()[:n], like)
	}
	if was, ok := like.(map[string]any); ok {
		return withNulls(map[string]any{}, was), nil
	}
	return e.list(nil, like)
}

func (e *exporter) object(t *lua.LTable, like any) (any, error) {
	was, _ := like.(map[string]any)
	names := t.Names()
	out := make(map[string]any, len(names))
	for _, key := range t.Keys() {
		name, ok := key.(lua.LString)
		if !ok {
			continue
		}
		x, ok := names[string(name)]
		if !ok {
			continue
		}
		if !utf8.ValidString(string(name)) {
			return nil, errors.New("has a key that is no text in UTF-8")
		}
		if err := e.take(1, len(name)); err != nil {
			return nil, err
		}
		e.path = append(e.path, string(name))
		v, err := e.value(x, was[string(name)])
		if err != nil {
			return nil, err
		}
		e.path = e.path[:len(e.path)-1]
		out[string(name)] = v
	}
	return withNulls(out, was), nil
}

// withNulls puts back the nulls of the object that the script was given: tables
// in Lua cannot hold them.
func withNulls(out, was map[string]any) map[string]any {
	for name, x := range was {
		if _, has := out[name]; x == nil && !has {
			out[name] = nil
		}
	}
	return out
}

func (e *exporter) list(elements []lua.LValue, like any) (any, error) {
	was, _ := like.([]any)
	out := make([]any, len(elements))
	for i, x := range elements {
		e.path = append(e.path, strconv.Itoa(i))
		var example any
		switch {
		case i < len(was):
			example = was[i]
		case len(was) > 0:
			example = was[len(was)-1]
		}
		if x == lua.LNil && (i >= len(was) || was[i] != nil) {
			return nil, errors.New("is nil within a list")
		}
		v, err := e.value(x, example)
		if err != nil {
			return nil, err
		}
		e.path = e.path[:len(e.path)-1]
		out[i] = v
	}
	if len(out) < len(was) && !slices.ContainsFunc(was[len(out):], func(x any) bool { return x != nil }) {
		out = append(out, was[len(out):]...) // nulls
	}
	return out, nil
}

// clone copies a value that the script did not look into.
func (e *exporter) clone(x any) (any, error) {
	if err := e.take(1, 16); err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, v := range x {
			if err := e.take(0, len(name)); err != nil {
				return nil, err
			}
			c, err := e.clone(v)
			if err != nil {
				return nil, err
			}
			out[name] = c
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, v := range x {
			c, err := e.clone(v)
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, nil
	case string:
		return x, e.take(0, len(x))
	default:
		return x, nil
	}
}
