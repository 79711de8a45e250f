package pattern

import (
	"errors"
	"strings"
)

// Limits of patterns: those of Lua itself.
const (
	MaxCaptures = 32
	maxNesting  = 200
)

var (
	// ErrSteps means that a match was given up because it took too many steps.
	ErrSteps   = errors.New("pattern takes too long")
	errComplex = errors.New("pattern is too complex")
)

// Values of Capture.Len that are no lengths: that of a capture which has not
// ended yet, and that of one which captures only its position.
const (
	Open     = -1
	Position = -2
)

// Matcher matches a Lua pattern by backtracking. It counts steps, since
// backtracking for a pattern of a few bytes can take longer than the age of the
// universe.
type Matcher struct {
	Text, Pattern string
	// Steps that may still be taken.
	Steps int
	// Captures of the last match.
	Captures []Capture
	nesting  int
}

// Capture is a part of the text that matched a part of the pattern. Len may be
// Open or Position.
type Capture struct{ Start, Len int }

// fail is the panic by which a match ends with an error.
type fail struct{ error }

// Find returns where the pattern matches first, from the byte init on; -1 where it
// does not. Errors: ErrSteps, or what is wrong with the pattern.
func (m *Matcher) Find(init int) (start, end int, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fail)
			if !ok {
				panic(r)
			}
			start, end, err = -1, -1, f.error
		}
	}()
	pattern, anchored := 0, strings.HasPrefix(m.Pattern, "^")
	if anchored {
		pattern = 1
	}
	for s := init; s <= len(m.Text); s++ {
		m.Captures = m.Captures[:0]
		if e := m.match(s, pattern); e >= 0 {
			return s, e, nil
		}
		if anchored {
			break
		}
	}
	return -1, -1, nil
}

func (m *Matcher) tick() {
	m.Steps--
	if m.Steps < 0 {
		panic(fail{ErrSteps})
	}
}

// match returns the end of a match of the pattern from p on at s; -1 for none.
func (m *Matcher) match(s, p int) int {
	m.nesting++
	if m.nesting > maxNesting {
		panic(fail{errComplex})
	}
	defer func() { m.nesting-- }()
	for p < len(m.Pattern) {
		m.tick()
		switch m.Pattern[p] {
		case '(':
			if p+1 < len(m.Pattern) && m.Pattern[p+1] == ')' {
				return m.open(s, p+2, Position)
			}
			return m.open(s, p+1, Open)
		case ')':
			return m.shut(s, p+1)
		case '$':
			if p+1 == len(m.Pattern) {
				if s == len(m.Text) {
					return s
				}
				return -1
			}
		case '%':
			if next, at, ok := m.special(s, p); ok {
				if at < 0 {
					return -1
				}
				s, p = at, next
				continue
			}
		}
		end := m.classEnd(p)
		m.Steps -= (end - p) / 8 // a long class is read at each character
		var quantifier byte
		if end < len(m.Pattern) {
			quantifier = m.Pattern[end]
		}
		switch quantifier {
		case '?':
			if m.single(s, p, end) {
				if e := m.match(s+1, end+1); e >= 0 {
					return e
				}
			}
			p = end + 1
		case '*':
			return m.most(s, p, end, 0)
		case '+':
			return m.most(s, p, end, 1)
		case '-':
			return m.least(s, p, end)
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
	return s
}

// special matches %b, %f and %1 to %9; ok is false where the pattern has none of
// them at p.
func (m *Matcher) special(s, p int) (next, at int, ok bool) {
	if p+1 >= len(m.Pattern) {
		return 0, 0, false
	}
	switch c := m.Pattern[p+1]; {
	case c == 'b':
		return p + 4, m.balance(s, p+2), true
	case c == 'f':
		return m.frontier(s, p+2)
	case c >= '0' && c <= '9':
		return p + 2, m.again(s, int(c)-'1'), true
	}
	return 0, 0, false
}

func (m *Matcher) frontier(s, p int) (next, at int, ok bool) {
	if p >= len(m.Pattern) || m.Pattern[p] != '[' {
		panic(fail{errors.New("missing '[' after '%f' in pattern")})
	}
	end := m.classEnd(p)
	var before, here byte
	if s > 0 {
		before = m.Text[s-1]
	}
	if s < len(m.Text) {
		here = m.Text[s]
	}
	if !m.set(before, p, end-1) && m.set(here, p, end-1) {
		return end, s, true
	}
	return 0, -1, true
}

// balance matches %b: from a delimiter to the one that closes it.
func (m *Matcher) balance(s, p int) int {
	if p+1 >= len(m.Pattern) {
		panic(fail{errors.New("missing arguments to '%b' in pattern")})
	}
	if s >= len(m.Text) || m.Text[s] != m.Pattern[p] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.Text); i++ {
		m.tick()
		switch m.Text[i] {
		case m.Pattern[p+1]:
			if depth--; depth == 0 {
				return i + 1
			}
		case m.Pattern[p]:
			depth++
		}
	}
	return -1
}

// again matches the text of an earlier capture.
func (m *Matcher) again(s, i int) int {
	if i < 0 || i >= len(m.Captures) || m.Captures[i].Len == Open {
		panic(fail{errors.New("invalid capture index in pattern")})
	}
	c := m.Captures[i]
	if c.Len == Position {
		panic(fail{errors.New("capture of a position cannot be matched again")})
	}
	m.Steps -= c.Len / 64
	m.tick()
	if !strings.HasPrefix(m.Text[s:], m.Text[c.Start:c.Start+c.Len]) {
		return -1
	}
	return s + c.Len
}

func (m *Matcher) open(s, p, kind int) int {
	if len(m.Captures) >= MaxCaptures {
		panic(fail{errors.New("too many captures in pattern")})
	}
	m.Captures = append(m.Captures, Capture{s, kind})
	n := len(m.Captures)
	e := m.match(s, p)
	if e < 0 {
		m.Captures = m.Captures[:n-1]
	}
	return e
}

func (m *Matcher) shut(s, p int) int {
	for i := len(m.Captures) - 1; i >= 0; i-- {
		if m.Captures[i].Len != Open {
			continue
		}
		m.Captures[i].Len = s - m.Captures[i].Start
		e := m.match(s, p)
		if e < 0 {
			m.Captures[i].Len = Open
		}
		return e
	}
	panic(fail{errors.New("invalid ')' in pattern")})
}

func (m *Matcher) most(s, p, end, least int) int {
	n := 0
	for m.single(s+n, p, end) {
		m.tick()
		n++
	}
	for ; n >= least; n-- {
		if e := m.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *Matcher) least(s, p, end int) int {
	for {
		if e := m.match(s, end+1); e >= 0 {
			return e
		}
		if !m.single(s, p, end) {
			return -1
		}
		m.tick()
		s++
	}
}

// classEnd returns where the part of the pattern that matches one byte ends.
func (m *Matcher) classEnd(p int) int {
	c := m.Pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.Pattern) {
			panic(fail{errors.New("pattern ends with '%'")})
		}
		return p + 1
	case '[':
		if p < len(m.Pattern) && m.Pattern[p] == '^' {
			p++
		}
		for first := true; ; first = false {
			if p >= len(m.Pattern) {
				panic(fail{errors.New("missing ']' in pattern")})
			}
			c := m.Pattern[p]
			p++
			if c == ']' && !first {
				return p
			}
			if c == '%' {
				p++
			}
		}
	default:
		return p
	}
}

// single reports whether the byte at s matches the class from p to end.
func (m *Matcher) single(s, p, end int) bool {
	if s >= len(m.Text) {
		return false
	}
	c := m.Text[s]
	switch m.Pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.Pattern[p+1])
	case '[':
		return m.set(c, p, end-1)
	default:
		return m.Pattern[p] == c
	}
}

// set reports whether c is in the set that begins at p and whose bracket is at end.
func (m *Matcher) set(c byte, p, end int) bool {
	p++
	in := true
	if m.Pattern[p] == '^' {
		in = false
		p++
	}
	for m.Steps -= (end - p) / 8; p < end; {
		switch {
		case m.Pattern[p] == '%' && p+1 < end:
			if inClass(c, m.Pattern[p+1]) {
				return in
			}
			p += 2
		case p+2 < end && m.Pattern[p+1] == '-':
			if m.Pattern[p] <= c && c <= m.Pattern[p+2] {
				return in
			}
			p += 3
		default:
			if m.Pattern[p] == c {
				return in
			}
			p++
		}
	}
	return !in
}

// inClass reports whether c is in the class of a letter. An upper-case letter is
// the complement of the lower-case one, and a character that is no class stands
// for itself.
func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = 'a' <= c|0x20 && c|0x20 <= 'z'
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = '0' <= c && c <= '9'
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = c > 0x20 && c < 0x7f && !inClass(c, 'w')
	case 's':
		in = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	case 'x':
		in = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return c == class
	}
	return in == (class >= 'a')
}
