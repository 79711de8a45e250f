package pattern

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/gopher-lua/pm"
)

// TestPatternLimits checks that matches that take too long, and texts that are no
// patterns, end with an error.
func TestPatternLimits(t *testing.T) {
	cases := map[string]struct{ text, pattern, want string }{
		"backtracking":            {strings.Repeat("a", 50), strings.Repeat("a*", 20) + "b", ErrSteps.Error()},
		"too many captures":       {"x", strings.Repeat("()", 40), "too many captures in pattern"},
		"nested too deep":         {strings.Repeat("x", 300), strings.Repeat("x?", 300), errComplex.Error()},
		"an end of nothing":       {"x", "x)", "invalid ')' in pattern"},
		"a set without an end":    {"x", "[x", "missing ']' in pattern"},
		"a set of nothing":        {"x", "[]", "missing ']' in pattern"},
		"a class of nothing":      {"x", "x%", "pattern ends with '%'"},
		"balance of nothing":      {"x", "%bx", "missing arguments to '%b' in pattern"},
		"a frontier of nothing":   {"x", "%fx", "missing '[' after '%f' in pattern"},
		"a capture that is not":   {"x", "%1", "invalid capture index in pattern"},
		"a capture that is open":  {"x", "(%1)", "invalid capture index in pattern"},
		"a capture of a position": {"x", "()%1", "capture of a position cannot be matched again"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := Matcher{Text: tc.text, Pattern: tc.pattern, Steps: 10_000}
			if _, _, err := m.Find(0); err == nil || err.Error() != tc.want {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
}

// FuzzPattern compares the matches with those of the VM's own matcher, where that
// ends soon. It leaves out patterns that the VM reads in another way than Lua
// does: %f, a caret or dollar within, sets that have classes in ranges or begin
// with a bracket, open captures, and quantifiers of nothing.
func FuzzPattern(f *testing.F) {
	for _, s := range [][2]string{
		{"hello world", "o"}, {"key=value", "(%w+)=(%w+)"}, {"  trim  ", "^%s*(.-)%s*$"}, {"f(a(b)c)", "%b()"},
		{"2026-03-14", "(%d+)-(%d+)-(%d+)"}, {"aaab", "a-b"}, {"abc", "[a-c]+"}, {"abc", "[^b]"}, {"x.y", "%."},
		{"'a'", "(['\"])(.-)%1"}, {"abc", "()b()"}, {"", ""}, {"aaa", "a?a?aaa"}, {"\x00b", "%z"}, {"ABC", "%u%U*"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, pattern string) {
		if len(text) > 24 || len(pattern) > 12 || !comparable(pattern) {
			return
		}
		m := Matcher{Text: text, Pattern: pattern, Steps: 20_000}
		start, end, err := m.Find(0)
		if errors.Is(err, ErrSteps) || err != nil {
			return
		}
		theirs, err := pm.Find(pattern, []byte(text), 0, 1)
		if err != nil {
			return
		}
		want := []int{-1, -1}
		if len(theirs) > 0 {
			want = []int{theirs[0].Capture(0), theirs[0].Capture(1)}
			for i := 2; i+1 < theirs[0].CaptureLength(); i += 2 {
				want = append(want, theirs[0].Capture(i), theirs[0].Capture(i+1))
			}
		}
		got := []int{start, end}
		for i := range m.Captures {
			if start < 0 {
				break
			}
			switch c := m.Captures[i]; c.Len {
			case Position:
				got = append(got, c.Start+1, c.Start+1)
			case Open:
				return
			default:
				got = append(got, c.Start, c.Start+c.Len)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q in %q (-want +got):\n%s", pattern, text, diff)
		}
	})
}

// comparable reports whether both matchers read a pattern in the same way.
func comparable(pattern string) bool {
	body := strings.TrimPrefix(pattern, "^")
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case strings.IndexByte("*+-?", c) >= 0 && (i == 0 || strings.IndexByte("*+-?()", body[i-1]) >= 0):
			return false
		case strings.IndexByte("*+-?", c) >= 0 && i > 1 && body[i-2] == '%' && body[i-1] >= '0' && body[i-1] <= '9':
			return false
		case c == '^', c == '$' && i < len(body)-1, c == ']', c >= 0x80:
			return false
		case c == '[':
			end := strings.IndexByte(body[i:], ']')
			inside := ""
			if end > 0 {
				inside = strings.TrimPrefix(body[i+1:i+end], "^")
			}
			if inside == "" || strings.ContainsAny(inside, "%[-^") {
				return false
			}
			i += end
		case c == '%':
			if i++; i == len(body) || strings.IndexByte("bf0123456789", body[i]) >= 0 || !plain(body[i]) {
				return false
			}
		case c == '(' && strings.Count(body, "(") != strings.Count(body, ")"):
			return false
		}
	}
	return true
}

func plain(c byte) bool {
	return strings.IndexByte("acdlpsuwxzACDLPSUWXZ.%()[]*+-?^$ ", c) >= 0
}
