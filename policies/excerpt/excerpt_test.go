package excerpt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// TestBytes: no text is longer than it may be, or cut within a character.
func TestBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		n    int
		want string
	}{
		"short enough":                     {"ready", 5, "ready"},
		"too long":                         {"not ready", 8, "not r…"},
		"it would be cut in a character":   {"größer", 6, "gr…"},
		"characters of three bytes":        {"日本語", 8, "日…"},
		"there is room for the mark alone": {"ready", 3, "…"},
		"what is no text":                  {"a\xffb", 9, "a?b"},
		"nothing":                          {"", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Bytes(tc.text, tc.n); got != tc.want {
				t.Errorf("%q of %d bytes, want %q", got, len(got), tc.want)
			}
		})
	}
}

// TestRunes: so many characters, however many bytes each has.
func TestRunes(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		n    int
		want string
	}{
		"short enough":            {"größer", 6, "größer"},
		"too long":                {"größer als", 6, "größe…"},
		"cut where a word begins": {"größer als", 8, "größer…"},
		"nothing is left":         {"größer", 1, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Runes(tc.text, tc.n); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestRunesTo: the end that says what to do stays, unless there would be little room for anything else.
func TestRunesTo(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		n    int
		want string
	}{
		"short enough":                {"größer do: it", 13, "größer do: it"},
		"too long":                    {"größer als etwas do: it", 20, "größer als e… do: it"},
		"cut where a word begins":     {"größer als etwas do: it", 16, "größer a… do: it"},
		"the last one counts":         {"do: that, which is great, or do: it", 20, "do: that, wh… do: it"},
		"there is no such end":        {"größer als etwas, tu es", 20, "größer als etwas, t…"},
		"it would take too much room": {"größer als etwas do: it", 14, "größer als et…"},
		"it would be cut":             {"größer do: it and more", 12, "größer…"},
		"nothing else is there":       {"do: itagain", 10, "do: itaga…"},
		"nothing":                     {"", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.RunesTo(tc.text, "do: ", tc.n); got != tc.want || utf8.RuneCountInString(got) > tc.n {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestVisible(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":                        {"größer als 日本\n\tin two lines", "größer als 日本\n\tin two lines"},
		"a bell, a null and an escape": {"a\ab\x00c\x1b[2Jd", `a\u0007b\u0000c\u001b[2Jd`},
		"the direction is turned":      {"nginx\u202egpj.exe", `nginx\u202egpj.exe`},
		"the line begins anew":         {"Failed\rReady", `Failed\u000dReady`},
		"a separator of lines":         {"Failed\u2028Ready", `Failed\u2028Ready`},
		"nothing":                      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Visible(tc.text); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestInline(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":                   {"größer als", "größer als"},
		"several lines":           {"one\n\ttwo\r\n", `one\u000a\u0009two\u000d\u000a`},
		"the direction is turned": {"nginx\u202egpj.exe", `nginx\u202egpj.exe`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Inline(tc.text); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":                   {"größer als", "größer als"},
		"several lines":           {" one\n  two\r\n\tthree ", "one two three"},
		"control characters":      {"a\ab\x00c\x1b[2J", "a b c [2J"},
		"the direction is turned": {"nginx\u202egpj.exe", "nginx gpj.exe"},
		"what is no text":         {"a\xffb", "a?b"},
		"nothing to be seen":      {"\x00\u200b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Line(tc.text); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzBytes(f *testing.F) {
	f.Add("größer", 6)
	f.Add(strings.Repeat("日", 9), 4)
	f.Fuzz(func(t *testing.T, text string, n int) {
		got := excerpt.Bytes(text, n)
		if !utf8.ValidString(got) || len(got) > max(n, len("…")) {
			t.Errorf("%q is cut to %q, at most %d bytes", text, got, n)
		}
	})
}

// TestMessage: what a text hides is shown before it is cut, so that the codes count as well.
func TestMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		n    int
		want string
	}{
		"plain":                      {"not ready\nyet", 20, "not ready\nyet"},
		"a bell takes six bytes":     {"a\abcdef", 10, `a\u0007` + "…"},
		"what fits with its code":    {"a\ab", 8, `a\u0007b`},
		"what is no text is marked":  {"a\xffb", 9, "a?b"},
		"an address, before the cut": {"GET https://bob:hunter2@reg.example/v2?x=1: 401", 40, "GET https://reg.example/v2: 401"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Message(tc.text, tc.n); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
