package sandbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		source string
		want   string // part of the error; empty for no error
	}{
		"a function":                       {"local x = 1\nfunction InterpretHealth(obj)\n  return obj.status.ready == x\nend", ""},
		"a function that is a value":       {"InterpretHealth = function(obj) return true end", ""},
		"a library that is required":       {"local kube = require(\"kube\")\nfunction InterpretHealth(obj) return kube ~= nil end", ""},
		"another function":                 {"function Retain(a, b) return a end", sandbox.ErrUndefined.Error()},
		"a local one cannot be called":     {"local function InterpretHealth(obj) return true end", sandbox.ErrUndefined.Error()},
		"a method is no function":          {"t = {}\nfunction t:InterpretHealth() end", sandbox.ErrUndefined.Error()},
		"the name in a comment":            {"-- InterpretHealth", sandbox.ErrUndefined.Error()},
		"nothing":                          {"", sandbox.ErrUndefined.Error()},
		"no Lua":                           {"func InterpretHealth(obj) {}", "parse error"},
		"an end too few":                   {"function InterpretHealth(obj)", "syntax error"},
		"a jump to nowhere":                {"function InterpretHealth(obj) goto away end", "away"},
		"a break outside of a loop":        {"break", "break"},
		"a string without an end":          {"x = \"", "unterminated"},
		"too many locals for the compiler": {"local a" + strings.Repeat(",a", 300), "too many local variables"},
		"more than fits":                   {strings.Repeat(" ", sandbox.MaxSource+1), sandbox.ErrTooLong.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := sandbox.Check(tc.source, "InterpretHealth")
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error = %v, want %q", err, tc.want)
			case err != nil && strings.Contains(err.Error(), "\n"):
				t.Errorf("an error of several lines: %q", err)
			}
		})
	}
}

// TestDeep checks that compiling a script that is nested as deeply as its size
// allows does not overflow the stack.
func TestDeep(t *testing.T) {
	for _, open := range []string{"{", "(", "not ", "-", "f(", "do ", "a={"} {
		source := "x = " + strings.Repeat(open, (sandbox.MaxSource-4)/len(open))
		if err := sandbox.Check(source, "f"); err == nil {
			t.Errorf("%q without an end is no error", open)
		}
	}
	closed := "x = " + strings.Repeat("{", sandbox.MaxSource/2-2) + strings.Repeat("}", sandbox.MaxSource/2-2)
	if err := sandbox.Check(closed, "f"); err == nil {
		t.Error("it defines no f")
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"function f() end", "f = 1", "x = {[1]=", "goto a ::a::", "--[[", "return ...", "f = 0x", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		_ = sandbox.Check(source, "f") // it must come back
	})
}

// TestLong checks that scripts that take the compiler long are bounded by their
// size, so that it returns; the log shows how soon.
func TestLong(t *testing.T) {
	build := func(n int, part func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(part(i))
		}
		return b.String()
	}
	for name, part := range map[string]func(i int) string{
		"constants": func(i int) string { return fmt.Sprintf("x=%d ", i+1000) },
		"names":     func(i int) string { return fmt.Sprintf("x%d=1 ", i+1000) },
		"jumps":     func(i int) string { return fmt.Sprintf("goto l%d ::l%d:: ", i, i) },
		"loops":     func(int) string { return "while x do break end " },
		"calls":     func(int) string { return "f() " },
		"functions": func(int) string { return "function f() end " },
		"choices":   func(int) string { return "x=a and b or c " },
		"concats":   func(int) string { return "x=a..b " },
	} {
		t.Run(name, func(t *testing.T) {
			source := build(sandbox.MaxSource/len(part(99999)), part)
			start := time.Now()
			err := sandbox.Check(source, "f") // it must come back
			t.Log(time.Since(start), err)
		})
	}
}
