package tint

import (
	"bytes"
	"io"
	"strings"
)

// cyan is for the places of a difference.
const cyan = "\x1b[36m"

// Difference is For, for lines of which some are indented differences: what goes is red, and what comes green.
func Difference(out io.Writer) io.Writer {
	if !Wanted(out) {
		return out
	}
	return comparer{out}
}

// comparer colors the lines of differences, which are indented, and all others as a painter does.
type comparer struct{ out io.Writer }

// Write implements io.Writer.
func (c comparer) Write(text []byte) (int, error) {
	var painted bytes.Buffer
	for line := range strings.Lines(string(text)) {
		body := strings.TrimSuffix(line, "\n")
		painted.WriteString(differing(body) + line[len(body):])
	}
	if _, err := c.out.Write(painted.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// margin is how far differences are indented.
const margin = "    "

// differing colors one line.
func differing(line string) string {
	body, indented := strings.CutPrefix(line, margin)
	if !indented || body == "" {
		return paint(line)
	}
	switch body[0] {
	case '-':
		return margin + red + body + plain
	case '+':
		return margin + green + body + plain
	case '@':
		return margin + cyan + body + plain
	case '!':
		return margin + yellow + body + plain
	default:
		return line
	}
}
