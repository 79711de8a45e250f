package lineage

import (
	"strings"
	"unicode/utf8"
)

// narrowest is the least that lines are broken to, also on a terminal that is narrower: what
// is one word a line is read by nobody.
const narrowest = 24

// wrap breaks a text into lines of at most width characters, between words where it can, and
// within those that are longer than a line. Of a width of 0 nothing is broken.
func wrap(text string, width int) []string {
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

// widest is how many characters the longest line has.
func widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return most
}
