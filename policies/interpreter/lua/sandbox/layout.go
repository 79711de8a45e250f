package sandbox

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// What follows looks at what the VM keeps to itself: which instruction comes
// next, and how large a table is. Nothing else tells what an instruction is about
// to cost, and one can cost as much as a whole script. All of it is only read,
// but for tables that are filled with the input: they get room for all of it.
// Where a field is, is asked of the type itself; a VM that has other fields
// makes this package panic as the program starts, and any test fail.

// tableView is how the VM lays out a table.
type tableView struct {
	metatable lua.LValue
	array     []lua.LValue
	dict      map[lua.LValue]lua.LValue
	strdict   map[string]lua.LValue
	keys      []lua.LValue
	k2i       map[lua.LValue]int
}

// frameAt are the offsets that lead from a state to the instruction that it is
// about to run.
type frameAt struct{ frame, fn, pc, base uintptr }

var frames = locate()

// locate finds the fields, and compares the layout of tables with tableView.
func locate() frameAt {
	table, view := reflect.TypeFor[lua.LTable](), reflect.TypeFor[tableView]()
	same := table.NumField() == view.NumField()
	for i := 1; same && i < view.NumField(); i++ {
		a, b := table.Field(i), view.Field(i)
		same = a.Name == b.Name && a.Type == b.Type && a.Offset == b.Offset
	}
	state, ok1 := reflect.TypeFor[lua.LState]().FieldByName("currentFrame")
	if !same || !ok1 || state.Type.Kind() != reflect.Pointer {
		panic("the Lua VM has another layout than this package knows")
	}
	frame := state.Type.Elem()
	fn, ok1 := frame.FieldByName("Fn")
	pc, ok2 := frame.FieldByName("Pc")
	base, ok3 := frame.FieldByName("LocalBase")
	if !ok1 || !ok2 || !ok3 || fn.Type != reflect.TypeFor[*lua.LFunction]() ||
		pc.Type.Kind() != reflect.Int || base.Type.Kind() != reflect.Int {
		panic("the Lua VM has other frames than this package knows")
	}
	return frameAt{state.Offset, fn.Offset, pc.Offset, base.Offset}
}

// view returns the inside of a table.
func view(t *lua.LTable) *tableView { return (*tableView)(unsafe.Pointer(t)) }

// current returns the function that runs, the index of the instruction after
// the one that is about to run, and how many registers lie below it.
func current(l *lua.LState) (fn *lua.LFunction, pc, base int) {
	frame := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(l), frames.frame))
	return *(**lua.LFunction)(unsafe.Add(frame, frames.fn)),
		*(*int)(unsafe.Add(frame, frames.pc)),
		*(*int)(unsafe.Add(frame, frames.base))
}
