package lua

// What Flotilla adds to GopherLua: each instruction is shown to a meter before it
// runs, and tables show how large they are, so that a script pays for what it is
// about to do. Nothing here changes what a script does.

// Meter is asked before each instruction of a script.
type Meter interface {
	// Step says whether inst may run: an instruction of fn, whose registers have
	// base others below them. An error is raised instead of running it.
	Step(fn *LFunction, inst uint32, base int) error
}

// SetMeter makes the state ask a meter instead of its context; SetContext takes that
// back. Threads of the state, which only libraries that are not here make, ask none.
func (ls *LState) SetMeter(m Meter) {
	ls.mainLoop = func(ls *LState, baseframe *callFrame) { mainLoopWithMeter(ls, baseframe, m) }
}

// mainLoopWithMeter is mainLoopWithContext with a meter.
func mainLoopWithMeter(L *LState, baseframe *callFrame, m Meter) {
	if L.stack.IsEmpty() {
		return
	}
	L.currentFrame = L.stack.Last()
	if L.currentFrame.Fn.IsG {
		callGFunction(L, false)
		return
	}
	for {
		cf := L.currentFrame
		inst := cf.Fn.Proto.Code[cf.Pc]
		cf.Pc++
		if err := m.Step(cf.Fn, inst, cf.LocalBase); err != nil {
			L.RaiseError("%s", err.Error())
		}
		if jumpTable[int(inst>>26)](L, inst, baseframe) == 1 {
			return
		}
	}
}

// Elements returns the table's list, LNil where there is nothing; its capacity is
// what the list may grow to without being moved. It is the table's own: it may only
// be read.
func (tb *LTable) Elements() []LValue { return tb.array }

// Names returns what the table has under strings, nil where it never had any. It is
// the table's own: it may only be read.
func (tb *LTable) Names() map[string]LValue { return tb.strdict }

// Others returns what the table has under keys that are neither strings nor in its
// list, nil where it never had any. It is the table's own: it may only be read.
func (tb *LTable) Others() map[LValue]LValue { return tb.dict }

// Keys returns the keys outside the list that the table has or has had, in the order
// in which it is gone through. They are the table's own: they may only be read.
func (tb *LTable) Keys() []LValue { return tb.keys }

// KeyAt returns the place of a key in Keys, and whether it is there.
func (tb *LTable) KeyAt(key LValue) (int, bool) {
	i, ok := tb.k2i[key]
	return i, ok
}

// ReserveElements gives a table that is empty room for a list of n elements.
func (tb *LTable) ReserveElements(n int) { tb.array = make([]LValue, 0, n) }

// ReserveNames gives a table that is empty room for n strings as keys.
func (tb *LTable) ReserveNames(n int) {
	tb.strdict = make(map[string]LValue, n)
	tb.keys = make([]LValue, 0, n)
	tb.k2i = make(map[LValue]int, n)
}

// OpenLibs opens nothing: the libraries are not here, and with them no way to files,
// processes, clocks or goroutines.
func (ls *LState) OpenLibs() {}
