package pattern

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// found is the outcome of a match.
type found struct {
	Start, End int
	Captures   []Capture
}

// at returns a match that captures nothing.
func at(start, end int) found { return found{Start: start, End: end} }

// nowhere is the outcome where nothing matches.
var nowhere = at(-1, -1)

// find returns the outcome of a match that takes few steps.
func find(t *testing.T, text, pattern string, init int) found {
	t.Helper()
	m := Matcher{Text: text, Pattern: pattern, Steps: 10_000}
	start, end, err := m.Find(init)
	if err != nil {
		t.Fatal(err)
	}
	return found{start, end, append([]Capture(nil), m.Captures...)}
}

// TestFind checks that patterns match as Lua's manual defines it. It covers what
// FuzzPattern leaves out, and every quantifier.
func TestFind(t *testing.T) {
	cases := map[string]struct {
		text, pattern string
		init          int
		want          found
	}{
		"nothing matches nothing":                            {"", "", 0, at(0, 0)},
		"nothing matches behind the last byte":               {"ab", "", 2, at(2, 2)},
		"the first of several":                               {"abab", "b", 0, at(1, 2)},
		"the first from where it starts":                     {"abab", "b", 2, at(3, 4)},
		"an anchor holds at the start":                       {"abab", "^ab", 0, at(0, 2)},
		"an anchor does not look further":                    {"xab", "^ab", 0, nowhere},
		"an anchor holds where it starts":                    {"xab", "^ab", 1, at(1, 3)},
		"a caret within is a caret":                          {"a^b", "a^b", 0, at(0, 3)},
		"a dollar at the end is the end":                     {"abab", "ab$", 0, at(2, 4)},
		"a dollar at the end is not before":                  {"abx", "ab$", 0, nowhere},
		"a dollar within is a dollar":                        {"a$b", "a$b", 0, at(0, 3)},
		"a dollar that is escaped is a dollar":               {"ab$", "b%$", 0, at(1, 3)},
		"a point is any byte":                                {"\x00\xff", "..", 0, at(0, 2)},
		"a question mark takes one":                          {"aab", "a?b", 0, at(1, 3)},
		"a question mark takes none":                         {"cb", "ca?b", 0, at(0, 2)},
		"a question mark gives back":                         {"a", "a?a", 0, at(0, 1)},
		"a star takes as many as it can":                     {"aaab", "a*", 0, at(0, 3)},
		"a star takes none":                                  {"b", "a*", 0, at(0, 0)},
		"a star gives back":                                  {"aaa", "a*aa", 0, at(0, 3)},
		"a plus takes one at least":                          {"baa", "a+", 0, at(1, 3)},
		"a plus takes no none":                               {"b", "a+", 0, nowhere},
		"a minus takes as few as it can":                     {"<a><b>", "<.->", 0, at(0, 3)},
		"a minus takes more where it has to":                 {"aab", "^a-b", 0, at(0, 3)},
		"a minus ends where its class does":                  {"aac", "^a-b", 0, nowhere},
		"a minus ends where the text does":                   {"aa", "^a-b", 0, nowhere},
		"a balance goes to its own end":                      {"f(a(b)c)d)", "%b()", 0, at(1, 8)},
		"a balance of equal delimiters ends at the next":     {"x'a'b'", "%b''", 0, at(1, 4)},
		"a balance without an end":                           {"((a)", "^%b()", 0, nowhere},
		"a balance that does not begin here":                 {"a(b)", "^%b()", 0, nowhere},
		"a balance at the end of the text":                   {"a", "a%b()", 0, nowhere},
		"what follows a balance has to match, too":           {"(a)x(b)y", "%b()y", 0, at(4, 8)},
		"a frontier is where a set begins":                   {"the (word) here", "%f[%a]%a+%f[%A]", 4, at(5, 9)},
		"a frontier at the start, before which is a zero":    {"word", "%f[%a]word", 0, at(0, 4)},
		"a frontier at the end, behind which is a zero":      {"word", "word%f[%z]", 0, at(0, 4)},
		"a frontier at the end, of what is no letter":        {"word", "%a+%f[%A]", 0, at(0, 4)},
		"a frontier not within a word":                       {"aword", "^a%f[%a]word", 0, nowhere},
		"a frontier of a set that is not":                    {"ab1", "%f[^%a]1", 0, at(2, 3)},
		"a set has members":                                  {"xcab", "[abc]+", 0, at(1, 4)},
		"a set has ranges":                                   {"+7f", "[0-9a-f]+", 0, at(1, 3)},
		"a set that is not":                                  {"abc1", "[^a-c]", 0, at(3, 4)},
		"a set has classes":                                  {"--a_1 ", "[%w_]+", 0, at(2, 5)},
		"a set that is not has classes":                      {"a1-", "[^%a%d]", 0, at(2, 3)},
		"a set has what is escaped":                          {"a]", "[%]]", 0, at(1, 2)},
		"a bracket that comes first is a member":             {"a]b", "[]]", 0, at(1, 2)},
		"a bracket that comes first is not a member":         {"]]b", "[^]]", 0, at(2, 3)},
		"a minus that comes last is a member":                {"b-", "[a-]", 0, at(1, 2)},
		"a percent that is escaped is a member":              {"x%", "[%%]", 0, at(1, 2)},
		"what is captured":                                   {"key=value", "(%w+)=(%w+)", 0, found{0, 9, []Capture{{0, 3}, {4, 5}}}},
		"what is captured within what is captured":           {"abc", "((a)(b))", 0, found{0, 2, []Capture{{0, 2}, {0, 1}, {1, 1}}}},
		"a place that is captured":                           {"abc", "b()", 0, found{1, 2, []Capture{{2, Position}}}},
		"nothing that is captured":                           {"a", "a()(b?)", 0, found{0, 1, []Capture{{1, Position}, {1, 0}}}},
		"what is captured by the match, not by what was not": {"aab", "(a)b", 0, found{1, 3, []Capture{{1, 1}}}},
		"what is captured anew when it takes less":           {"aaa", "(a*)a", 0, found{0, 3, []Capture{{0, 2}}}},
		"what is captured, again":                            {`say "it's"`, `(["'])(.-)%1`, 0, found{4, 10, []Capture{{4, 1}, {5, 4}}}},
		"what is captured, not again":                        {"abac", "^(ab)%1", 0, nowhere},
		"what is captured, with more than is left":           {"aba", "^(ab)%1", 0, nowhere},
		"the second that is captured, again":                 {"abba", "(a)(b)%2%1", 0, found{0, 4, []Capture{{0, 1}, {1, 1}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, find(t, tc.text, tc.pattern, tc.init)); diff != "" {
				t.Errorf("%q in %q (-want +got):\n%s", tc.pattern, tc.text, diff)
			}
		})
	}
}

// TestClasses checks that classes have the bytes that they have in the C locale,
// and that upper-case letters are their complements.
func TestClasses(t *testing.T) {
	const lower, upper, digits = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	const control = "\x00\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0e\x0f" +
		"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f"
	cases := map[string]struct{ class, others, want string }{
		"letters":               {"%a", "%A", upper + lower},
		"control characters":    {"%c", "%C", control},
		"digits":                {"%d", "%D", digits},
		"lower letters":         {"%l", "%L", lower},
		"punctuation":           {"%p", "%P", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"},
		"spaces":                {"%s", "%S", "\t\n\v\f\r "},
		"upper letters":         {"%u", "%U", upper},
		"letters and digits":    {"%w", "%W", digits + upper + lower},
		"hexadecimal digits":    {"%x", "%X", digits + "ABCDEF" + "abcdef"},
		"zero":                  {"%z", "%Z", "\x00"},
		"a letter of no class":  {"%g", "[^%g]", "g"},
		"an upper one":          {"%G", "[^%G]", "G"},
		"a mark":                {"%.", "[^%.]", "."},
		"a byte beyond letters": {"%\xe1", "[^%\xe1]", "\xe1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var others []byte
			for c := range 256 {
				if strings.IndexByte(tc.want, byte(c)) < 0 {
					others = append(others, byte(c))
				}
			}
			want := [2]string{tc.want, string(others)}
			if diff := cmp.Diff(want, [2]string{members(t, tc.class), members(t, tc.others)}); diff != "" {
				t.Errorf("bytes of %s and of %s (-want +got):\n%s", tc.class, tc.others, diff)
			}
		})
	}
}

// TestNoClass checks that every byte but the letters of classes stands for itself,
// including those that differ from such a letter by one bit.
func TestNoClass(t *testing.T) {
	for class := range 256 {
		if strings.IndexByte("acdlpsuwxzACDLPSUWXZ", byte(class)) >= 0 {
			continue
		}
		pattern := "[%" + string([]byte{byte(class)}) + "]"
		if diff := cmp.Diff(pattern[2:3], members(t, pattern)); diff != "" {
			t.Errorf("bytes of %q (-want +got):\n%s", pattern, diff)
		}
	}
}

// members returns all bytes that a pattern matches.
func members(t *testing.T, pattern string) string {
	t.Helper()
	var out []byte
	for c := range 256 {
		if find(t, string([]byte{byte(c)}), pattern, 0).Start == 0 {
			out = append(out, byte(c))
		}
	}
	return string(out)
}
