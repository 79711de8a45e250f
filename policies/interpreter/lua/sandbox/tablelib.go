package sandbox

import (
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

var tableFunctions = map[string]lua.LGFunction{
	"concat": tableConcat, "getn": tableLength, "insert": tableInsert, "maxn": tableMaxN, "remove": tableRemove, "sort": tableSort,
}

func tableLength(l *lua.LState) int {
	v := of(l)
	l.Push(lua.LNumber(v.len(v.table(1))))
	return 1
}

func tableMaxN(l *lua.LState) int {
	v := of(l)
	t := v.table(1)
	v.pay(len(t.Elements())/8, 0)
	l.Push(lua.LNumber(t.MaxN()))
	return 1
}

func tableConcat(l *lua.LState) int {
	v := of(l)
	t, sep := v.table(1), l.OptString(2, "")
	from, to := l.OptInt(3, 1), 0
	if l.Get(4) == lua.LNil {
		to = v.len(t)
	} else {
		to = l.CheckInt(4)
	}
	parts := []string{}
	for i := from; i <= to; i++ {
		v.pay(1, 2*valueBytes+24)
		x := t.RawGetInt(i)
		if !lua.LVCanConvToString(x) {
			l.RaiseError("element %d of the table is a %s, which cannot be concatenated", i, x.Type())
		}
		parts = append(parts, x.String())
	}
	total := 0
	for _, p := range parts {
		total += len(p) + len(sep)
		v.pay((len(p)+len(sep))/textPerStep, len(p)+len(sep))
	}
	l.Push(lua.LString(strings.Join(parts, sep)))
	return 1
}

func tableInsert(l *lua.LState) int {
	v := of(l)
	t := v.table(1)
	n := v.len(t)
	switch l.GetTop() {
	case 2:
		v.grown(t, n+1)
		t.RawSetInt(n+1, l.Get(2))
	case 3:
		at := l.CheckInt(2)
		if at < 1 || at > n+1 {
			v.assigned(t, lua.LNumber(at))
			l.RawSet(t, lua.LNumber(at), l.Get(3))
			return 0
		}
		v.grown(t, n+1)
		v.pay((n-at)/16, 0)
		for i := n; i >= at; i-- {
			t.RawSetInt(i+1, t.RawGetInt(i))
		}
		t.RawSetInt(at, l.Get(3))
	default:
		l.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

// grown pays for a list to grow to n elements.
func (v *vm) grown(t *lua.LTable, n int) {
	if !v.grow(t.Elements(), n) {
		v.pay(0, 0)
	}
}

// assigned pays for assigning to a key of a table.
func (v *vm) assigned(t *lua.LTable, key lua.LValue) {
	if !v.assignment(t, key) {
		v.pay(0, 0)
	}
}

func tableRemove(l *lua.LState) int {
	v := of(l)
	t := v.table(1)
	n := v.len(t)
	at := l.OptInt(2, n)
	if n == 0 || at < 1 || at > n {
		l.Push(lua.LNil)
		return 1
	}
	v.pay((n-at)/8, 0)
	l.Push(t.Remove(at))
	return 1
}

func tableSort(l *lua.LState) int {
	v := of(l)
	t := v.table(1)
	var less *lua.LFunction
	if l.Get(2) != lua.LNil {
		less = l.CheckFunction(2)
	}
	n := v.len(t)
	v.pay(n, n*valueBytes)
	s := sorter{v, less, make([]lua.LValue, n)}
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, x := range s.values {
		t.RawSetInt(i+1, x)
	}
	return 0
}

// sorter sorts a list with a script's comparison. sort.Sort ends even if that is
// no order.
type sorter struct {
	vm     *vm
	less   *lua.LFunction
	values []lua.LValue
}

func (s sorter) Len() int      { return len(s.values) }
func (s sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

func (s sorter) Less(i, j int) bool {
	l, a, b := s.vm.state, s.values[i], s.values[j]
	s.vm.pay(2+min(size(a), size(b))/16, 0)
	if s.less == nil {
		return l.LessThan(a, b)
	}
	l.Push(s.less)
	l.Push(a)
	l.Push(b)
	l.Call(2, 1)
	yes := lua.LVAsBool(l.Get(-1))
	l.Pop(1)
	return yes
}
