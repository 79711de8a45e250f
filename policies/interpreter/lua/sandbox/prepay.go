package sandbox

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Costs of what the VM allocates, in bytes. They are upper bounds, and include
// the garbage that growing a table leaves.
const (
	numberBytes   = 8
	valueBytes    = 16
	tableBytes    = 128
	firstEntry    = 2800 // the first name in a table allocates for 32
	entryBytes    = 280
	firstElement  = 32 * valueBytes
	closureBytes  = 112
	upvalueBytes  = 80
	argTableBytes = 4096
)

// textPerStep is how many bytes of text are read for one step.
const textPerStep = 64

// meter charges the budget for what a state is about to do.
type meter struct {
	budget
	state *lua.LState
}

// prepay charges the budget for what the next instruction costs beyond one step,
// and reports whether there was enough. It has a case for every instruction that
// can do more than a fixed amount of work.
func (m *meter) prepay(fn *lua.LFunction, inst uint32, base int) bool {
	a, b, c := int(inst>>18)&0xff, int(inst&0x1ff), int(inst>>9)&0x1ff
	switch int(inst >> 26) {
	case lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_POW, lua.OP_MOD:
		return m.arithmetic(fn, b, c, int(inst>>26) == lua.OP_MOD)
	case lua.OP_UNM:
		return m.arithmetic(fn, b, b, false)
	case lua.OP_FORLOOP, lua.OP_FORPREP:
		return m.spend(0, 2*numberBytes)
	case lua.OP_EQ, lua.OP_LT, lua.OP_LE:
		return m.compare(fn, b, c)
	case lua.OP_CONCAT:
		return m.concat(b, c)
	case lua.OP_LEN:
		return m.length(m.register(fn, b))
	case lua.OP_NEWTABLE:
		return m.spend(0, int64(tableBytes+valueBytes*b+entryBytes*c))
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		return m.assignment(m.register(fn, a), m.register(fn, b))
	case lua.OP_SETGLOBAL:
		return m.assignment(fn.Env, fn.Proto.Constants[int(inst&0x3ffff)])
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		return m.lookup(m.register(fn, b), m.register(fn, c))
	case lua.OP_SETLIST:
		if b == 0 {
			b = m.state.GetTop() - a
		}
		return m.spend(int64(b), int64(firstElement+6*valueBytes*b))
	case lua.OP_CLOSURE:
		n := int(fn.Proto.FunctionPrototypes[int(inst&0x3ffff)].NumUpvalues)
		return m.spend(int64(n*(1+base>>6)), int64(closureBytes+n*upvalueBytes))
	case lua.OP_RETURN, lua.OP_TAILCALL, lua.OP_CLOSE:
		// Each of them walks over the locals of all callers that are captured by
		// closures.
		return m.spend(int64(base>>4), 0) && (int(inst>>26) != lua.OP_TAILCALL || m.entry(a, b))
	case lua.OP_CALL, lua.OP_TFORLOOP:
		return m.spend(3, 0) && m.entry(a, b)
	case lua.OP_VARARG:
		return m.spend(int64(m.state.GetTop()>>2), 0)
	default:
		return true
	}
}

// register returns the value of a register of the running function, or one of its
// constants.
func (m *meter) register(fn *lua.LFunction, i int) lua.LValue {
	if i&0x100 != 0 {
		return fn.Proto.Constants[i&0xff]
	}
	return m.state.Get(i + 1)
}

func (m *meter) arithmetic(fn *lua.LFunction, b, c int, modulo bool) bool {
	x, y := m.register(fn, b), m.register(fn, c)
	left, ok1 := x.(lua.LNumber)
	right, ok2 := y.(lua.LNumber)
	if ok1 && ok2 {
		return m.spend(int64(remainderSteps(modulo, float64(left), float64(right))), numberBytes)
	}
	read := size(x) + size(y) // texts are parsed as numbers
	return m.spend(int64(read/8), int64(4*read+128))
}

// remainderSteps returns what a remainder costs: where the quotient is large, it
// is computed bit by bit.
func remainderSteps(modulo bool, m, n float64) int {
	if !modulo || math.Abs(m) < math.Abs(n)*(1<<53) {
		return 0
	}
	return 256
}

func (m *meter) compare(fn *lua.LFunction, b, c int) bool {
	x, ok := m.register(fn, b).(lua.LString)
	if !ok {
		return true
	}
	return m.spend(int64(min(len(x), size(m.register(fn, c)))/16), 0)
}

func (m *meter) concat(b, c int) bool {
	total := 0
	for i := b; i <= c; i++ {
		total += size(m.state.Get(i + 1))
	}
	return m.spend(int64(total/textPerStep+c-b), int64(total+2*valueBytes*(c-b+1)))
}

// size returns how long a string or number is as text, in bytes; zero for other
// types.
func size(x lua.LValue) int {
	switch x := x.(type) {
	case lua.LString:
		return len(x)
	case lua.LNumber:
		return 24
	default:
		return 0
	}
}

// length pays for the length of a table, which is found by stepping back from the
// end of its list.
func (m *meter) length(x lua.LValue) bool {
	t, ok := x.(*lua.LTable)
	if !ok {
		return true
	}
	list := t.Elements()
	if n := len(list); n > 0 && list[n-1] == lua.LNil {
		return m.spend(int64(n/8), 0)
	}
	return true
}

// lookup pays for finding a key. Where x is no table, it also pays for the error,
// which quotes the whole key.
func (m *meter) lookup(x, key lua.LValue) bool {
	name, ok := key.(lua.LString)
	if !ok || len(name) <= textPerStep {
		return true
	}
	reported := 0
	if _, ok := x.(*lua.LTable); !ok {
		reported = 6 * len(name)
	}
	return m.spend(int64(len(name)/textPerStep), int64(reported))
}

// assignment pays for assigning to a key of a table.
func (m *meter) assignment(x, key lua.LValue) bool {
	t, ok := x.(*lua.LTable)
	if !ok {
		return m.lookup(x, key)
	}
	switch key := key.(type) {
	case lua.LString:
		if _, has := t.Names()[string(key)]; has {
			return m.lookup(x, key)
		}
		return m.lookup(x, key) && m.spend(2, entry(t.Names() == nil))
	case lua.LNumber:
		if i := float64(key); i >= 1 && i < float64(lua.MaxArrayIndex) && i == math.Trunc(i) {
			return m.grow(t.Elements(), int(i))
		}
	}
	if _, has := t.Others()[key]; has {
		return true
	}
	return m.spend(2, entry(t.Others() == nil))
}

func entry(first bool) int64 {
	if first {
		return firstEntry
	}
	return entryBytes
}

// grow pays for a list to grow to n elements.
func (m *meter) grow(list []lua.LValue, n int) bool {
	if n <= cap(list) {
		return m.spend(int64(max(0, n-len(list))/8), 0)
	}
	more := max(n, 2*cap(list))
	if n > len(list)+1 {
		more = 6 * n // the list grows element by element, and is copied again and again
	}
	return m.spend(int64(max(0, n-len(list))/4), int64(firstElement+valueBytes*more))
}

// entry pays for entering a function: one of variable arguments that uses Lua
// 5.0's table arg gets that table.
func (m *meter) entry(a, b int) bool {
	f, ok := m.state.Get(a + 1).(*lua.LFunction)
	if !ok || f.IsG || f.Proto.IsVarArg == 0 {
		return true
	}
	n := b
	if b == 0 {
		n = m.state.GetTop() - a
	}
	if f.Proto.IsVarArg&lua.VarArgNeedsArg == 0 {
		return m.spend(int64(n/4), 0)
	}
	return m.spend(int64(n), int64(argTableBytes+valueBytes*n))
}
