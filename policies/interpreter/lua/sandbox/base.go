package sandbox

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// baseFunctions are the global functions. Those that could leave the sandbox, or
// get around the metatables that it relies on, are left out.
var baseFunctions = map[string]lua.LGFunction{
	"assert": baseAssert, "error": baseError, "ipairs": baseIpairs, "next": baseNext, "pairs": basePairs,
	"pcall": basePcall, "print": func(*lua.LState) int { return 0 }, "require": baseRequire, "select": baseSelect,
	"tonumber": baseTonumber, "tostring": baseTostring, "type": baseType, "unpack": baseUnpack, "xpcall": baseXpcall,
}

func baseAssert(l *lua.LState) int {
	if lua.LVAsBool(l.CheckAny(1)) {
		return l.GetTop()
	}
	if l.GetTop() >= 2 {
		l.Error(l.Get(2), 0)
	}
	l.RaiseError("assertion failed!")
	return 0
}

func baseError(l *lua.LState) int {
	thrown, level := l.Get(1), l.OptInt(2, 1)
	if text, ok := thrown.(lua.LString); ok {
		of(l).pay(0, 2*len(text))
	}
	l.Error(thrown, max(0, min(level, callDepth)))
	return 0
}

func baseIpairs(l *lua.LState) int {
	t := of(l).table(1)
	l.Push(nextElement)
	l.Push(t)
	l.Push(lua.LNumber(0))
	return 3
}

var nextElement = function(func(l *lua.LState) int {
	of(l).pay(1, numberBytes)
	i := l.CheckInt(2) + 1
	x := l.CheckTable(1).RawGetInt(i)
	if x == lua.LNil {
		return 0
	}
	l.Push(lua.LNumber(i))
	l.Push(x)
	return 2
})

func basePairs(l *lua.LState) int {
	t := of(l).table(1)
	l.Push(nextEntry)
	l.Push(t)
	l.Push(lua.LNil)
	return 3
}

var nextEntry = function(baseNext)

// baseNext returns the entry after a key. It pays for stepping over entries that
// were removed.
func baseNext(l *lua.LState) int {
	v := of(l)
	t, key := v.table(1), l.Get(2)
	list, keys := t.Elements(), t.Keys()
	n, inList := key.(lua.LNumber)
	inList = inList && n >= 1 && n < lua.LNumber(lua.MaxArrayIndex) && float64(n) == math.Trunc(float64(n))
	from := len(list)
	switch at, known := t.KeyAt(key); {
	case key == lua.LNil:
		from = 0
	case inList:
		from = min(int(n), len(list)) // the list may have become shorter
	case !known:
		l.RaiseError("next: the table has no such key")
	default:
		from += at + 1
	}
	for i := from; i < len(list)+len(keys); i++ {
		if (i-from)%32 == 31 {
			v.pay(8, 0)
		}
		if i < len(list) {
			if x := list[i]; x != lua.LNil {
				l.Push(lua.LNumber(i + 1))
				l.Push(x)
				return 2
			}
			continue
		}
		k := keys[i-len(list)]
		if x := t.RawGetH(k); x != lua.LNil {
			v.pay(1, 0)
			l.Push(k)
			l.Push(x)
			return 2
		}
	}
	l.Push(lua.LNil)
	return 1
}

// basePcall calls a function and catches its errors, except that a budget is used
// up.
func basePcall(l *lua.LState) int {
	l.CheckAny(1)
	return protect(l, 1, nil)
}

func baseXpcall(l *lua.LState) int {
	handler := l.CheckFunction(2)
	l.SetTop(1)
	return protect(l, 1, handler)
}

// protect calls the function at index first with the arguments that follow it.
func protect(l *lua.LState, first int, handler *lua.LFunction) int {
	v, n := of(l), l.GetTop()-first
	l.Insert(caught, first)
	err := l.PCall(n+1, lua.MultRet, nil)
	if err == nil {
		l.Insert(lua.LTrue, first)
		return l.GetTop() - first + 1
	}
	api, ok := err.(*lua.ApiError)
	if v.stopped != nil || !ok || api.Type == lua.ApiErrorPanic {
		v.abort(err)
	}
	text, _ := api.Object.(lua.LString)
	v.pay(250, 256+4*len(text))
	if api.StackTrace != noTrace { // the stack was too full to leave out the trace
		v.pay(16*callDepth, 384*callDepth)
	}
	l.SetTop(0)
	if handler == nil {
		l.Push(lua.LFalse)
		l.Push(api.Object)
		return 2
	}
	l.Push(handler)
	l.Push(api.Object)
	l.Call(1, lua.MultRet)
	l.Insert(lua.LFalse, 1)
	return l.GetTop()
}

// caught calls its first argument with the others. It sets l.Panic so that errors
// carry no trace; PCall has just replaced it.
var caught = function(func(l *lua.LState) int {
	l.Panic = raise
	l.Call(l.GetTop()-1, lua.MultRet)
	return l.GetTop()
})

// abort ends the call, in a way that no script can catch.
func (v *vm) abort(err error) {
	if v.stopped == nil {
		v.stopped = fmt.Errorf("the VM failed: %s", Line(err.Error()))
	}
	v.next = 0
	panic(err)
}

func baseRequire(l *lua.LState) int {
	name := l.CheckString(1)
	if name != "kube" {
		l.RaiseError("there is no module %q", Line(name))
	}
	of(l).pay(10, 4*entryBytes+firstEntry)
	l.Push(kubeLibrary.table())
	return 1
}

func baseSelect(l *lua.LState) int {
	n := l.GetTop() - 1
	if text, ok := l.Get(1).(lua.LString); ok && text == "#" {
		l.Push(lua.LNumber(n))
		return 1
	}
	i := l.CheckInt(1)
	if i < 0 {
		i += n + 1
	}
	if i < 1 {
		l.ArgError(1, "index out of range")
	}
	of(l).pay(n/4, 0)
	return max(0, n-i+1)
}

func baseTonumber(l *lua.LState) int {
	base := l.OptInt(2, 10)
	if base < 2 || base > 36 {
		l.ArgError(2, "base out of range")
	}
	switch x := l.CheckAny(1).(type) {
	case lua.LNumber:
		l.Push(x)
	case lua.LString:
		of(l).pay(len(x)/8, 2*len(x))
		l.Push(parseNumber(strings.TrimSpace(string(x)), base))
	default:
		l.Push(lua.LNil)
	}
	return 1
}

// parseNumber parses a number as Lua writes it; LNil where it is none.
func parseNumber(text string, base int) lua.LValue {
	digits, negative := strings.CutPrefix(text, "-")
	if hex := strings.ToLower(digits); base == 10 && strings.HasPrefix(hex, "0x") {
		digits, base = digits[2:], 16
	}
	if n, err := strconv.ParseUint(digits, base, 63); err == nil {
		if negative {
			return lua.LNumber(-float64(n))
		}
		return lua.LNumber(n)
	}
	if base != 10 || strings.Trim(text, "0123456789.eE+-") != "" {
		return lua.LNil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return lua.LNumber(f)
	}
	return lua.LNil
}

func baseTostring(l *lua.LState) int {
	l.Push(lua.LString(of(l).text(l.CheckAny(1))))
	return 1
}

// text returns a value as text. Tables and functions get a number in place of
// their address, so that the same call gives the same text each time.
func (v *vm) text(x lua.LValue) string {
	switch x := x.(type) {
	case lua.LString:
		return string(x)
	case *lua.LTable, *lua.LFunction:
		name, ok := v.names[x]
		if !ok {
			v.pay(4, 256)
			if v.names == nil {
				v.names = map[lua.LValue]string{}
			}
			name = fmt.Sprintf("%s: 0x%08x", x.Type(), len(v.names)+1)
			v.names[x] = name
		}
		return name
	default:
		v.pay(1, 32)
		return x.String()
	}
}

func baseType(l *lua.LState) int {
	l.Push(typeNames[l.CheckAny(1).Type()])
	return 1
}

var typeNames = func() (out [lua.LTChannel + 1]lua.LValue) {
	for i := range out {
		out[i] = lua.LString(lua.LValueType(i).String())
	}
	return out
}()

func baseUnpack(l *lua.LState) int {
	t := of(l).table(1)
	from, to := l.OptInt(2, 1), l.Get(3)
	last := 0
	if to == lua.LNil {
		last = of(l).len(t)
	} else {
		last = l.CheckInt(3)
	}
	n := last - from + 1
	if from > last {
		return 0
	}
	if n <= 0 || n > registers-l.GetTop() {
		l.RaiseError("too many results to unpack")
	}
	of(l).pay(n, 0)
	for i := from; i <= last; i++ {
		l.Push(t.RawGetInt(i))
	}
	return n
}

// len returns the length of a list, and pays for finding it.
func (v *vm) len(t *lua.LTable) int {
	if !v.length(t) {
		v.pay(0, 0)
	}
	return t.Len()
}
