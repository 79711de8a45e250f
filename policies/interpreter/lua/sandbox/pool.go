package sandbox

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Options are the budgets of one call of a script. Zero values stand for the
// budgets that are used in production.
type Options struct {
	// Steps is how much work a call may do. An instruction is one step; a library
	// function takes steps in proportion to the size of its arguments.
	Steps int64
	// Memory is how many bytes a call may allocate in total, including those that
	// are freed.
	Memory int64
	// Time is how long a call may take by the clock, which is read every few
	// thousand steps only: a short script is not stopped because the machine is
	// busy.
	Time time.Duration
	// Now is the clock; nil means that only Steps and Memory are counted, and
	// that scripts see the beginning of 1970.
	Now func() time.Time
}

// Pool holds idle VMs, and gives each call one of its own. It may be used by
// several goroutines.
type Pool struct {
	opts Options
	idle sync.Pool // of *vm
}

// New returns a pool.
func New(opts Options) *Pool {
	return &Pool{opts: Options{
		Steps:  cmp.Or(opts.Steps, defaultSteps),
		Memory: cmp.Or(opts.Memory, defaultMemory),
		Time:   cmp.Or(opts.Time, defaultTime),
		Now:    opts.Now,
	}}
}

// Results are what a script returned. They may only be read within the call, and
// reading is charged to its budget.
type Results struct {
	// Values has as many results as were asked for; lua.LNil for missing ones.
	Values []lua.LValue
	vm     *vm
}

// Call runs the script's main chunk with fresh globals, and then its function
// with args, which it neither changes nor keeps. want is how many results read is
// passed. Errors are one line that begins with the name of the script; a
// *BudgetError is in the chain of those of scripts that were stopped. A VM is not
// used again after an error.
func (p *Pool) Call(s *Script, want int, read func(Results) error, args ...any) (err error) {
	v, ok := p.idle.Get().(*vm)
	if !ok {
		v = newVM(p.opts)
	}
	defer func() {
		if r := recover(); r != nil {
			err = v.fault(s, r)
		}
		if err == nil {
			v.release()
			p.idle.Put(v)
		}
	}()
	values, err := v.call(s, want, args...)
	if err != nil {
		return err
	}
	if err := read(Results{values, v}); err != nil {
		return fmt.Errorf("%s: %s %w", s.Name, s.Function, err)
	}
	return nil
}

// Export returns a copy of what a script returned. like is the value that the
// script was given in its place, or one like it; nil where nothing is known. It
// decides what Lua cannot express: whether an empty table is a list, and which
// integer a number was before Lua rounded it.
func (r Results) Export(x lua.LValue, like any) (any, error) {
	return r.vm.export(x, like)
}

// Field returns the value of a name in a table that a script returned.
func (r Results) Field(t *lua.LTable, name string) lua.LValue {
	r.vm.fill(t)
	return t.RawGetString(name)
}
