// Package screen fits text to the width of a terminal.
//
// In go a writer, or a text and how many characters a line may have; out come the width of
// the writer, or the lines of the text. Without a terminal no line is broken. It writes
// nothing.
package screen

import (
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Width returns how many characters fit in a line of w; 0 if w is no terminal, or if that is not
// known.
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

// narrowest is the smallest width of wrapped lines, also on a narrower terminal: nobody can read one
// word per line.
const narrowest = 24

// Wrap breaks a text into lines of at most width characters, between words if possible, and within
// words that are longer than a line. A width of 0 means no wrapping.
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

// Widest returns how many characters the longest line has.
func Widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return most
}
