package report

import (
	"fmt"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// mostWords and mostLine are how long a foreign text, and a line of a difference, are at most, in characters.
const (
	mostWords = 500
	mostLine  = 1000
)

// code is a foreign text within a line. Within code nothing of it is Markdown, or mentions anybody; what would end the
// code becomes a quotation mark.
func code(text string) string {
	text = strings.ReplaceAll(excerpt.Runes(excerpt.Line(text), mostWords), "`", "'")
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "`" + unmarked(text) + "`"
}

// cell is one in a cell of a table. A bar would end it, within code too.
func cell(text string) string { return strings.ReplaceAll(code(text), "|", "¦") }

// unmarked breaks what begins a comment of HTML: by one, we know our own comments again.
func unmarked(text string) string { return strings.ReplaceAll(text, "<!--", "<¡--") }

// Block returns foreign lines as a block of code that no line of it can end. Of many lines the first and the last stay.
func Block(lines []string) string { return block("", lines) }

// block does it in a language.
func block(language string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	if more := len(lines) - mostLines; more > 0 {
		note := fmt.Sprintf("… %d lines left out …", more)
		lines = append(append(append([]string{}, lines[:mostLines*3/4]...), note), lines[len(lines)-mostLines/4:]...)
	}
	out := make([]string, len(lines))
	fence := 3
	for i, line := range lines {
		line = excerpt.Runes(excerpt.Inline(strings.TrimRight(line, "\r\n")), mostLine)
		out[i] = unmarked(line)
		fence = max(fence, longest(out[i], '`')+1)
	}
	if fence > mostFence { // nobody's manifest has such a run for a purpose
		fence = 3
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], "`", "'")
		}
	}
	ticks := strings.Repeat("`", fence)
	return ticks + language + "\n" + strings.Join(out, "\n") + "\n" + ticks
}

// mostFence is the longest mark around a block of code.
const mostFence = 16

// longest returns the length of the longest run of a character.
func longest(text string, of rune) int {
	best, run := 0, 0
	for _, r := range text {
		if r != of {
			run = 0
			continue
		}
		run++
		best = max(best, run)
	}
	return best
}

// Words returns a foreign text as part of a line of Markdown, of which it cannot leave its place.
func Words(text string) string { return code(text) }
