package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// How deep a script may call, and how many values its calls may hold: those of
// the VM that customizations were written for. Neither grows.
const (
	callDepth = 256
	registers = 256 * 20
)

// vm runs one call at a time. It is the meter of its state, which asks it before
// each instruction whether to go on, and the state's context, by which library
// functions find it.
type vm struct {
	meter
	// origins are the values of the input that tables were made from.
	origins map[*lua.LTable]origin
	// unfilled is the metatable of tables that no script has looked into.
	unfilled *lua.LTable
	// names are what scripts see instead of addresses.
	names map[lua.LValue]string
	// drawn is the last of the numbers that math.random draws.
	drawn uint64
}

func newVM(opts Options) *vm {
	v := &vm{meter: meter{budget: budget{opts: opts}}, origins: map[*lua.LTable]origin{}, unfilled: unfilled()}
	v.state = lua.NewState(lua.Options{CallStackSize: callDepth, RegistrySize: registers, SkipOpenLibs: true})
	v.state.Panic = raise
	v.state.SetContext(v)
	v.state.SetMeter(v)
	return v
}

// noTrace stands for the trace of a fault: the VM makes one where there is none.
const noTrace = "-"

// raise is how the VM leaves a function that failed. It spares the trace that
// the VM would put together each time, at the price of hundreds of steps.
func raise(l *lua.LState) {
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: l.Get(-1), StackTrace: noTrace})
}

// Step implements lua.Meter: an instruction pays before it runs.
func (v *vm) Step(fn *lua.LFunction, inst uint32, base int) error {
	v.steps++
	if (v.steps < v.next || v.check()) && v.prepay(fn, inst, base) {
		return nil
	}
	return v.stopped
}

// Done implements context.Context: nothing but its budget ends a call.
func (*vm) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (v *vm) Err() error { return v.stopped }

// Deadline implements context.Context.
func (*vm) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (*vm) Value(any) any { return nil }

// call runs the script's main chunk with fresh globals, and then its function
// with the arguments; want is how many results are asked for. Results of any
// type come back, lua.LNil for missing ones. After an error the VM is spoilt.
func (v *vm) call(s *Script, want int, args ...any) ([]lua.LValue, error) {
	v.reset()
	l := v.state
	env := globals(v, s.globals)
	l.Push(&lua.LFunction{Env: env, Proto: s.proto})
	l.Call(0, 0)
	f, ok := env.RawGetString(s.Function).(*lua.LFunction)
	if !ok {
		return nil, fmt.Errorf("%s: %s: %w", s.Name, s.Function, ErrUndefined)
	}
	l.Push(f)
	for _, a := range args {
		l.Push(v.value(a))
	}
	l.Call(len(args), want)
	results := make([]lua.LValue, want)
	for i := range results {
		results[i] = l.Get(i - want)
	}
	l.SetTop(0)
	return results, nil
}

// release forgets what the last call held.
func (v *vm) release() {
	clear(v.origins)
	v.names, v.drawn = nil, 0
}

// fault turns what a call left with into an error of one line.
func (v *vm) fault(s *Script, r any) error {
	api, ok := r.(*lua.ApiError)
	switch {
	case !ok && v.stopped == nil:
		return fmt.Errorf("%s: the VM failed: %s", s.Name, Line(fmt.Sprint(r)))
	case v.stopped != nil:
		return fmt.Errorf("%s: %w", s.at(r), v.stopped)
	}
	switch thrown := api.Object.(type) {
	case lua.LString, lua.LNumber:
		text := Line(thrown.String())
		if !strings.HasPrefix(text, s.Name+":") {
			text = s.Name + ": " + text
		}
		return errors.New(text)
	case *lua.LTable:
		if text, ok := thrown.RawGetString("message").(lua.LString); ok {
			return fmt.Errorf("%s: %s", s.Name, Line(string(text)))
		}
	}
	return fmt.Errorf("%s: it raised a %s", s.Name, api.Object.Type())
}

// ellipsis shows that a text goes on.
const ellipsis = "…"

// maxMessage is how many bytes of an error are shown, with the mark of one that goes
// on.
const maxMessage = 512 + len(ellipsis)

// Line returns text on one line, cut to what a condition can hold.
func Line(text string) string {
	end := ""
	if len(text) > maxMessage {
		// No more of a text is looked at: it may be as large as the budget.
		text, end = excerpt.Bytes(text[:min(len(text), 2*maxMessage)], maxMessage), ellipsis
	}
	text = strings.ToValidUTF8(strings.TrimSuffix(text, end), "?")
	return strings.Join(strings.Fields(text), " ") + end
}

// of returns the VM that a library function runs in.
func of(l *lua.LState) *vm { return l.Context().(*vm) }

// pay takes what a library function is about to do from the budget, and leaves
// the function where there is not enough.
func (v *vm) pay(steps, bytes int) {
	if !v.spend(int64(steps), int64(bytes)) {
		v.state.RaiseError("%s", v.stopped.Error())
	}
}
