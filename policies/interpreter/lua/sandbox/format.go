package sandbox

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxWidth is the largest width and precision of a format: two digits, as in Lua.
const maxWidth = 99

func stringFormat(l *lua.LState) int {
	v, format := of(l), l.CheckString(1)
	v.pay(len(format)/8, 2*len(format)+64)
	var out strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			out.WriteByte('%')
			continue
		}
		end := i
		for end < len(format) && strings.IndexByte("-+ #0123456789.", format[end]) >= 0 {
			end++
		}
		if end == len(format) {
			l.RaiseError("invalid end of the format")
		}
		flags := format[i:end]
		checkFlags(l, flags)
		arg++
		text := formatted(v, flags, format[end], arg)
		v.pay(len(text)/textPerStep+4, 6*len(text)+256)
		out.WriteString(text)
		i = end
	}
	l.Push(lua.LString(out.String()))
	return 1
}

// checkFlags raises an error for widths and precisions above maxWidth, which
// could write more than the budget allows.
func checkFlags(l *lua.LState, flags string) {
	width, precision, _ := strings.Cut(strings.TrimLeft(flags, "-+ #0"), ".")
	for _, n := range []string{width, precision} {
		if n == "" {
			continue
		}
		if i, err := strconv.Atoi(n); err != nil || i > maxWidth {
			l.RaiseError("invalid format: width or precision %q", Line(flags))
		}
	}
}

// formatted returns argument n, formatted with the flags and the verb.
func formatted(v *vm, flags string, verb byte, n int) string {
	l := v.state
	if n > l.GetTop() {
		l.RaiseError("bad argument #%d to 'format' (no value)", n)
	}
	switch verb {
	case 'd', 'i':
		return fmt.Sprintf("%"+flags+"d", int64(numeric(l, n)))
	case 'u':
		return fmt.Sprintf("%"+flags+"d", uint64(int64(numeric(l, n))))
	case 'o', 'x', 'X':
		return fmt.Sprintf("%"+flags+string(verb), int64(numeric(l, n)))
	case 'c':
		return string([]byte{byte(l.CheckInt(n))})
	case 'e', 'E', 'f', 'F', 'g', 'G':
		return fmt.Sprintf("%"+flags+string(verb), float64(numeric(l, n)))
	case 'q':
		text := l.CheckString(n)
		v.pay(len(text)/4, 8*len(text))
		return strconv.Quote(text)
	case 's':
		text := v.text(l.Get(n))
		if flags == "" {
			return text
		}
		v.pay(len(text)/8, 4*len(text))
		return fmt.Sprintf("%"+flags+"s", text)
	default:
		l.RaiseError("invalid format: %%%s%s", Line(flags), Line(string(rune(verb))))
		return ""
	}
}
