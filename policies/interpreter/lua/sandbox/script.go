package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Script is a compiled script. It may be used by several goroutines.
type Script struct {
	// Name of the script, for errors.
	Name string
	// Function is the global that the script defines and that is called.
	Function string
	proto    *lua.FunctionProto
	// globals are the names of the globals that the script uses, sorted.
	globals []string
}

// Compile compiles the source of a script that defines function. Its errors are
// one line and begin with name.
func Compile(name, source, function string) (*Script, error) {
	chunk, proto, err := chunkOf(name, source)
	switch {
	case errors.Is(err, ErrTooLong):
		return nil, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(chunk, func(s ast.Stmt) bool { return defines(s, function) }):
		return nil, fmt.Errorf("%s: %s: %w", name, function, ErrUndefined)
	}
	s := &Script{Name: name, Function: function, proto: proto}
	proto.IsVarArg &^= lua.VarArgNeedsArg // the chunk is called without arguments, so it needs no table of them
	s.survey(proto)
	slices.Sort(s.globals)
	s.globals = slices.Compact(s.globals)
	return s, nil
}

func chunkOf(name, source string) (chunk []ast.Stmt, proto *lua.FunctionProto, err error) {
	if len(source) > MaxSource {
		return nil, nil, ErrTooLong
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be compiled: %v", r)
		}
	}()
	chunk, err = parse.Parse(strings.NewReader(source), name)
	if err == nil {
		proto, err = lua.Compile(chunk, name)
	}
	if err != nil {
		return nil, nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	return chunk, proto, nil
}

// survey collects the names of the globals that a function and those nested in it
// use.
func (s *Script) survey(proto *lua.FunctionProto) {
	for _, inst := range proto.Code {
		if int(inst>>26) != lua.OP_GETGLOBAL {
			continue
		}
		// A closure instruction is followed by words that are no instructions and
		// may look like one. The bound is checked for these; a name too many does
		// no harm.
		if i := int(inst & 0x3ffff); i < len(proto.Constants) {
			if name, ok := proto.Constants[i].(lua.LString); ok {
				s.globals = append(s.globals, string(name))
			}
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		s.survey(inner)
	}
}

// at returns where a script stopped: its name, and the line if the VM's error has
// one.
func (s *Script) at(r any) string {
	if api, ok := r.(*lua.ApiError); ok {
		rest, ok := strings.CutPrefix(api.Object.String(), s.Name+":")
		if end := strings.IndexByte(rest, ':'); ok && end > 0 && end < 8 {
			return s.Name + ":" + rest[:end]
		}
	}
	return s.Name
}
