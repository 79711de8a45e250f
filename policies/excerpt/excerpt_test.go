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
