// Package screen fits text to the terminal that it is shown on.
//
// In go a writer, or a text and how many characters a line has room for; out come the width
// of the one, and the lines of the other. Where nobody looks no line is broken. It writes
// nothing.
package screen

import (
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Width is how many characters a line of w has room for; 0 where nobody looks, or where
// that is not known.
func Width(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// narrowest is the least that lines are broken to, also on a terminal that is narrower: what
// is one word a line is read by nobody.
const narrowest = 24

// Wrap breaks a text into lines of at most width characters, between words where it can, and
// within those that are longer than a line. Of a width of 0 nothing is broken.
func Wrap(text string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	width = max(width, narrowest)
	var out []string
	var line []rune
	for _, field := range strings.Fields(text) {
		word := []rune(field)
		if len(line) > 0 && len(line)+1+len(word) > width {
			out, line = append(out, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		line = append(line, word...)
		for len(line) > width {
			out, line = append(out, string(line[:width])), line[width:]
		}
	}
	return append(out, string(line))
}

// Widest is how many characters the longest line has.
func Widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return most
}
