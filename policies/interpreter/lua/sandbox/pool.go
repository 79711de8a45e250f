package sandbox

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Options are the budgets of one call of a script. Zero values are those of
// production.
type Options struct {
	// Steps is how much work a call may do: one step per instruction, and what
	// library functions do in proportion to what they are given.
	Steps int64
	// Memory is how many bytes a call may allocate in all, freed or not.
	Memory int64
	// Time is how long a call may take by the clock. It is looked at every few
	// thousand steps only: short scripts are not judged by how busy a machine is.
	Time time.Duration
	// Now is the clock; nil means that only Steps and Memory are counted, and
	// that scripts see the beginning of 1970.
	Now func() time.Time
}

// Pool holds VMs. It may be shared; each call has a VM of its own.
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

// Results are what a script returned. They are read within the call, on the
// budget of the call.
type Results struct {
	// Values are as many as were asked for; lua.LNil for missing ones.
	Values []lua.LValue
	vm     *vm
}

// Call runs the script's main chunk with fresh globals, and then its function
// with the arguments, which it neither changes nor keeps; want is how many
// results are asked for. read takes what it needs of them. A VM in which
// something failed is not used again. Errors are one line that begins with the
// name of the script; a *BudgetError is within those of scripts that were
// stopped.
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

// Export returns a copy of what a script returned. like is what such a value
// looks like in the object that the script was given; nil where nothing is
// known. It decides what Lua cannot express: whether an empty table is a list, and
// which integer a rounded number was.
func (r Results) Export(x lua.LValue, like any) (any, error) {
	return r.vm.export(x, like)
}

// Field returns what a table that a script returned has under a name.
func (r Results) Field(t *lua.LTable, name string) lua.LValue {
	r.vm.fill(t)
	return t.RawGetString(name)
}
