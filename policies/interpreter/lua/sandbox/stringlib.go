package sandbox

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/flotilla-io/flotilla/policies/interpreter/lua/pattern"
)

var stringFunctions = map[string]lua.LGFunction{
	"byte": stringByte, "char": stringChar, "find": stringFind, "format": stringFormat, "gmatch": stringGmatch,
	"gsub": stringGsub, "len": stringLen, "lower": stringLower, "match": stringMatch, "rep": stringRep,
	"reverse": stringReverse, "sub": stringSub, "upper": stringUpper,
}

// span converts Lua's from and to, which count from 1 or from the end, into the
// range start:end of a text of n bytes.
func span(n, from, to int) (start, end int) {
	if from < 0 {
		from = max(0, n+from+1)
	}
	if to < 0 {
		to = n + to + 1
	}
	start, end = max(0, from-1), min(to, n)
	return start, max(start, end)
}

func stringLen(l *lua.LState) int {
	l.Push(lua.LNumber(len(l.CheckString(1))))
	return 1
}

func stringSub(l *lua.LState) int {
	text := l.CheckString(1)
	start, end := span(len(text), l.CheckInt(2), l.OptInt(3, -1))
	of(l).pay(1, valueBytes)
	if start >= len(text) {
		start, end = 0, 0
	}
	l.Push(lua.LString(text[start:end]))
	return 1
}

func stringByte(l *lua.LState) int {
	text := l.CheckString(1)
	from := l.OptInt(2, 1)
	start, end := span(len(text), from, l.OptInt(3, from))
	if start >= len(text) {
		return 0
	}
	if end-start > registers-l.GetTop() {
		l.RaiseError("string slice too long")
	}
	of(l).pay(end-start, numberBytes*(end-start))
	for _, c := range []byte(text[start:end]) {
		l.Push(lua.LNumber(c))
	}
	return end - start
}

func stringChar(l *lua.LState) int {
	n := l.GetTop()
	of(l).pay(n, 2*n)
	out := make([]byte, n)
	for i := range out {
		c := l.CheckInt(i + 1)
		if c < 0 || c > 255 {
			l.ArgError(i+1, "invalid value")
		}
		out[i] = byte(c)
	}
	l.Push(lua.LString(out))
	return 1
}

// mapped returns a library function that applies f, whose result is about as long
// as its argument.
func mapped(f func(string) string) lua.LGFunction {
	return func(l *lua.LState) int {
		text := l.CheckString(1)
		of(l).pay(len(text)/8, 4*len(text)+valueBytes)
		l.Push(lua.LString(f(text)))
		return 1
	}
}

var (
	stringLower   = mapped(strings.ToLower)
	stringUpper   = mapped(strings.ToUpper)
	stringReverse = mapped(func(text string) string {
		out := []byte(text)
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
		return string(out)
	})
)

func stringRep(l *lua.LState) int {
	text, n := l.CheckString(1), l.CheckInt(2)
	if n <= 0 || text == "" {
		l.Push(lua.LString(""))
		return 1
	}
	v := of(l)
	if n > int(v.opts.Memory) {
		n = int(v.opts.Memory) + 1
	}
	v.pay(n*len(text)/textPerStep, n*len(text)+valueBytes)
	l.Push(lua.LString(strings.Repeat(text, n)))
	return 1
}

// search finds matches of a pattern, and pays for them.
type search struct {
	vm *vm
	pattern.Matcher
}

// search returns a search for the pattern p in text.
func (v *vm) search(text, p string) *search {
	v.pay(4, 128)
	return &search{v, pattern.Matcher{Text: text, Pattern: p}}
}

// find returns the next match from init on. It may use as many steps as the
// budget has left, and pays for those that it took.
func (s *search) find(init int) (start, end int) {
	const perStep = 4
	left := int(s.vm.opts.Steps-s.vm.steps) * perStep
	s.Steps = left
	start, end, err := s.Find(init)
	if s.vm.pay((left-s.Steps)/perStep, 4*valueBytes*(1+cap(s.Captures))); err != nil {
		s.vm.state.RaiseError("%s", err.Error())
	}
	return start, end
}

// captured pushes the captures of a match and returns their number. Where there
// are none and whole is set, it pushes the whole match.
func (s *search) captured(start, end int, whole bool) int {
	if len(s.Captures) == 0 && whole {
		s.vm.state.Push(lua.LString(s.Text[start:end]))
		return 1
	}
	for i := range s.Captures {
		s.vm.state.Push(s.capture(i))
	}
	return len(s.Captures)
}

func (s *search) capture(i int) lua.LValue {
	switch c := s.Captures[i]; c.Len {
	case pattern.Position:
		return lua.LNumber(c.Start + 1)
	case pattern.Open:
		s.vm.state.RaiseError("unfinished capture")
		return lua.LNil
	default:
		return lua.LString(s.Text[c.Start : c.Start+c.Len])
	}
}

// initial converts Lua's init, which counts from 1 or from the end, into an index
// of a text of n bytes; -1 beyond its end.
func initial(n, init int) int {
	switch {
	case init < 0:
		return max(0, n+init)
	case init > n+1:
		return -1
	default:
		return max(0, init-1)
	}
}

func stringFind(l *lua.LState) int {
	v, text, p := of(l), l.CheckString(1), l.CheckString(2)
	init := initial(len(text), l.OptInt(3, 1))
	if init < 0 {
		l.Push(lua.LNil)
		return 1
	}
	v.pay(len(p)/16, 0)
	if lua.LVAsBool(l.Get(4)) || !strings.ContainsAny(p, "^$*+?.([%-") {
		v.pay(len(text)/16, numberBytes)
		at := strings.Index(text[init:], p)
		if at < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(init + at + 1))
		l.Push(lua.LNumber(init + at + len(p)))
		return 2
	}
	s := v.search(text, p)
	start, end := s.find(init)
	if start < 0 {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(start + 1))
	l.Push(lua.LNumber(end))
	return 2 + s.captured(start, end, false)
}

func stringMatch(l *lua.LState) int {
	v, text, p := of(l), l.CheckString(1), l.CheckString(2)
	init := initial(len(text), l.OptInt(3, 1))
	if init >= 0 {
		s := v.search(text, p)
		if start, end := s.find(init); start >= 0 {
			return s.captured(start, end, true)
		}
	}
	l.Push(lua.LNil)
	return 1
}

func stringGmatch(l *lua.LState) int {
	v, next := of(l), 0
	s := v.search(l.CheckString(1), l.CheckString(2))
	v.pay(1, closureBytes)
	l.Push(function(func(l *lua.LState) int {
		if next > len(s.Text) {
			return 0
		}
		start, end := s.find(next)
		if start < 0 {
			next = len(s.Text) + 1
			return 0
		}
		if next = end; start == end {
			next++
		}
		return s.captured(start, end, true)
	}))
	return 1
}

func stringGsub(l *lua.LState) int {
	v := of(l)
	s := v.search(l.CheckString(1), l.CheckString(2))
	l.CheckTypes(3, lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction)
	most, n, next := l.OptInt(4, len(s.Text)+1), 0, 0
	anchored := strings.HasPrefix(s.Pattern, "^")
	var out []string
	write := func(text string) {
		v.pay(1+len(text)/textPerStep, len(text)+4*valueBytes)
		out = append(out, text)
	}
	for n < most && next <= len(s.Text) {
		start, end := s.find(next)
		if start < 0 {
			break
		}
		n++
		write(s.Text[next:start])
		write(s.replacement(l.Get(3), start, end))
		if next = end; start == end {
			if start < len(s.Text) {
				write(s.Text[start : start+1])
			}
			next++
		}
		if anchored {
			break
		}
	}
	if next < len(s.Text) {
		write(s.Text[next:])
	}
	l.Push(lua.LString(strings.Join(out, "")))
	l.Push(lua.LNumber(n))
	return 2
}

// replacement returns the text that replaces a match.
func (s *search) replacement(with lua.LValue, start, end int) string {
	v, l := s.vm, s.vm.state
	var out lua.LValue
	switch with := with.(type) {
	case *lua.LTable:
		v.fill(with)
		n := s.captured(start, end, true)
		key := l.Get(-n)
		l.Pop(n)
		out = with.RawGet(key)
	case *lua.LFunction:
		// The function cannot change the captures of this search: it has no access
		// to the matcher.
		l.Push(with)
		l.Call(s.captured(start, end, true), 1)
		out = l.Get(-1)
		l.Pop(1)
	default:
		return s.expand(lua.LVAsString(with), start, end)
	}
	switch {
	case !lua.LVAsBool(out):
		return s.Text[start:end]
	case !lua.LVCanConvToString(out):
		l.RaiseError("a replacement is a %s", out.Type())
	}
	return out.String()
}

// expand replaces %0 to %9 in with by the captures of a match.
func (s *search) expand(with string, start, end int) string {
	v := s.vm
	if !strings.Contains(with, "%") {
		return with
	}
	v.pay(len(with)/8, 4*len(with))
	var out strings.Builder
	for i := 0; i < len(with); i++ {
		if with[i] != '%' || i+1 == len(with) {
			out.WriteByte(with[i])
			continue
		}
		i++
		switch c := with[i]; {
		case c == '0' || c == '1' && len(s.Captures) == 0:
			v.pay(1, 6*(end-start))
			out.WriteString(s.Text[start:end])
		case c > '0' && c <= '9':
			k := int(c - '1')
			if k >= len(s.Captures) {
				v.state.RaiseError("invalid capture index %%%s in the replacement", strconv.Itoa(k+1))
			}
			text := s.capture(k).String()
			v.pay(1, 6*len(text))
			out.WriteString(text)
		case c == '%':
			out.WriteByte('%')
		default:
			out.WriteByte('%')
			out.WriteByte(c)
		}
	}
	return out.String()
}
