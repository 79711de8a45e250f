package sandbox

import (
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// origin is the value of the input from which a table is made. A table is filled
// when a script first looks into it, as most scripts read little of what they are
// given.
type origin struct {
	value  any // map[string]any or []any
	filled bool
}

// unfilled returns the metatable of tables that are not filled yet. Scripts
// cannot get at it.
func unfilled() *lua.LTable {
	return functions(map[string]lua.LGFunction{
		"__index": func(l *lua.LState) int {
			l.Push(of(l).table(1).RawGet(l.Get(2)))
			return 1
		},
		"__len": func(l *lua.LState) int {
			v := of(l)
			l.Push(lua.LNumber(v.len(v.table(1))))
			return 1
		},
		"__newindex": func(l *lua.LState) int {
			t := of(l).table(1)
			of(l).assigned(t, l.Get(2))
			l.RawSet(t, l.Get(2), l.Get(3))
			return 0
		},
	}).table()
}

// function returns a function that several VMs may share.
func function(f lua.LGFunction) *lua.LFunction { return &lua.LFunction{IsG: true, GFunction: f} }

// value returns the Lua value for a value of an object.
func (v *vm) value(x any) lua.LValue {
	switch x := x.(type) {
	case nil:
		return lua.LNil
	case string:
		return lua.LString(x)
	case bool:
		return lua.LBool(x)
	case int64:
		return lua.LNumber(x)
	case int32:
		return lua.LNumber(x)
	case int:
		return lua.LNumber(x)
	case float64:
		return lua.LNumber(x)
	case map[string]any, []any:
		t := &lua.LTable{Metatable: v.unfilled}
		v.origins[t] = origin{value: x}
		return t
	default:
		panic(fmt.Sprintf("an object holds a %T", x))
	}
}

// fill fills a table that was made from a value of the input. Names are added in
// order, so that a script iterates over the same object in the same order each
// time.
func (v *vm) fill(t *lua.LTable) {
	o, ok := v.origins[t]
	if !ok || o.filled {
		return
	}
	t.Metatable = lua.LNil
	v.origins[t] = origin{o.value, true}
	switch x := o.value.(type) {
	case []any:
		v.pay(len(x), len(x)*(valueBytes+tableBytes))
		t.ReserveElements(len(x))
		for i, e := range x {
			t.RawSetInt(i+1, v.value(e))
		}
	case map[string]any:
		v.pay(2*len(x), len(x)*(entryBytes+tableBytes))
		names := make([]string, 0, len(x))
		for name, e := range x {
			if e != nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		t.ReserveNames(len(names))
		for _, name := range names {
			t.RawSetString(name, v.value(x[name]))
		}
	}
}

// table returns argument n of a library function, a table, filled.
func (v *vm) table(n int) *lua.LTable {
	t := v.state.CheckTable(n)
	if t.Metatable != lua.LNil {
		v.fill(t)
	}
	return t
}
