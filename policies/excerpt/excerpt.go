// Package excerpt shortens texts to what a field, an Event or a line holds.
//
// In go texts of any content and length; out come valid ones that are no longer than they
// may be, cut between characters, and that show that they were cut.
package excerpt

import "strings"

// mark shows that a text goes on.
const mark = "…"

// Bytes returns text, cut to at most n bytes, mark included, where it is longer. What is no
// valid UTF-8 becomes question marks: stores refuse it.
func Bytes(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, n-len(mark))], "") + mark
}

// Runes returns text, cut to at most n characters, mark included, where it is longer. Space
// before the mark goes.
func Runes(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return strings.TrimRight(string(runes[:max(0, n-1)]), " ") + mark
}
