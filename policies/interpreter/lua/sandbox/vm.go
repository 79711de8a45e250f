package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// How deeply a script may nest calls, and how many values its calls may hold: the
// limits of the VM that customizations were written for. Neither grows.
const (
	callDepth = 256
	registers = 256 * 20
)

// vm runs one call at a time. It is the meter of its Lua state, which asks it
// before each instruction whether to go on. It is also the state's context, so
// that library functions can find it.
type vm struct {
	meter
	// origins are the values of the input from which tables were made.
	origins map[*lua.LTable]origin
	// unfilled is the metatable of tables that no script has looked into yet.
	unfilled *lua.LTable
	// names are what scripts see instead of addresses of tables and functions.
	names map[lua.LValue]string
	// drawn is the state of math.random.
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

// noTrace is set as the trace of an error: the VM makes a trace where there is
// none.
const noTrace = "-"

// raise is how the VM leaves a function that failed. It leaves out the trace,
// which would cost hundreds of steps each time.
func raise(l *lua.LState) {
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: l.Get(-1), StackTrace: noTrace})
}

// Step implements lua.Meter: it charges for an instruction before it runs.
func (v *vm) Step(fn *lua.LFunction, inst uint32, base int) error {
	v.steps++
	if (v.steps < v.next || v.check()) && v.prepay(fn, inst, base) {
		return nil
	}
	return v.stopped
}

// Done implements context.Context; a call is ended by its budget only.
func (*vm) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (v *vm) Err() error { return v.stopped }

// Deadline implements context.Context.
func (*vm) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (*vm) Value(any) any { return nil }

// call runs the script's main chunk with fresh globals, and then its function
// with args. It returns want results of any type, lua.LNil for missing ones.
// After an error the VM must not be used again.
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

// release drops what the last call held.
func (v *vm) release() {
	clear(v.origins)
	v.names, v.drawn = nil, 0
}

// fault converts the panic by which a call ended into an error of one line.
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

// ellipsis stands at the end of a text that was cut.
const ellipsis = "…"

// maxMessage is how long an error may be, in bytes, with the ellipsis.
const maxMessage = 512 + len(ellipsis)

// Line returns text on one line, cut to maxMessage, which conditions can hold.
func Line(text string) string {
	end := ""
	if len(text) > maxMessage {
		// The rest of the text is not read, as it may be as large as the memory
		// budget.
		text, end = excerpt.Bytes(text[:min(len(text), 2*maxMessage)], maxMessage), ellipsis
	}
	text = strings.ToValidUTF8(strings.TrimSuffix(text, end), "?")
	return strings.Join(strings.Fields(text), " ") + end
}

// of returns the VM in which a library function runs.
func of(l *lua.LState) *vm { return l.Context().(*vm) }

// pay charges the budget for what a library function is about to do, and raises
// an error where there is not enough.
func (v *vm) pay(steps, bytes int) {
	if !v.spend(int64(steps), int64(bytes)) {
		v.state.RaiseError("%s", v.stopped.Error())
	}
}
