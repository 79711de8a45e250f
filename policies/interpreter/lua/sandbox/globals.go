package sandbox

import (
	"maps"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// library holds the members of a table of functions, or of the globals, sorted by
// name.
type library []member

type member struct {
	name  string
	value lua.LValue
}

// functions returns a library of functions and other members.
func functions(fs map[string]lua.LGFunction, more ...member) library {
	out := library(more)
	for name, f := range fs {
		out = append(out, member{name, function(f)})
	}
	slices.SortFunc(out, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return out
}

// table returns a new table with the members of the library.
func (lib library) table() *lua.LTable {
	t := &lua.LTable{Metatable: lua.LNil}
	for _, m := range lib {
		t.RawSetString(m.name, m.value)
	}
	return t
}

// find returns a member of the library by its name.
func (lib library) find(name string) (lua.LValue, bool) {
	i, ok := slices.BinarySearchFunc(lib, name, func(m member, name string) int { return strings.Compare(m.name, name) })
	if !ok {
		return lua.LNil, false
	}
	return lib[i].value, true
}

// tables are the libraries that are tables among the globals.
var tables = map[string]library{
	"math":   functions(mathFunctions, member{"huge", lua.LNumber(math.MaxFloat64)}, member{"pi", lua.LNumber(math.Pi)}),
	"os":     functions(osFunctions),
	"string": stringLibrary,
	"table":  functions(tableFunctions),
}

// stringLibrary is where methods of strings are looked up, such as s:upper(). All
// scripts share its table, except for those that name string and so could change
// it: they get a copy.
var (
	stringLibrary = functions(stringFunctions)
	sharedMethods = methods(stringLibrary.table())
)

// methods returns the metatable of strings whose methods are those of lib.
func methods(lib *lua.LTable) *lua.LTable {
	t := &lua.LTable{Metatable: lua.LNil}
	t.RawSetString("__index", lib)
	return t
}

// globals returns a new table of the globals that a script names. A script that
// names _G gets all of them, as it can iterate over them.
func globals(v *vm, names []string) *lua.LTable {
	if _, all := slices.BinarySearch(names, "_G"); all {
		names = allGlobals
	}
	env := &lua.LTable{Metatable: lua.LNil}
	meta := sharedMethods
	for _, name := range names {
		if lib, ok := tables[name]; ok {
			t := lib.table()
			env.RawSetString(name, t)
			if name == "string" {
				meta = methods(t)
			}
		} else if f, ok := baseLibrary.find(name); ok {
			env.RawSetString(name, f)
		} else if name == "_G" {
			env.RawSetString(name, env)
		}
	}
	v.state.SetMetatable(lua.LString(""), meta)
	return env
}

var (
	baseLibrary = functions(baseFunctions, member{"_VERSION", lua.LString(lua.LuaVersion)})
	allGlobals  = func() []string {
		names := append(slices.Collect(maps.Keys(tables)), "_G")
		for _, m := range baseLibrary {
			names = append(names, m.name)
		}
		slices.Sort(names)
		return names
	}()
)
