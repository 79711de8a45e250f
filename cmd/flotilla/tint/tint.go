// Package tint colors the output of commands by meaning: healthy, failed, and unknown.
//
// In go formatted lines; out come the same lines with the color codes of terminals around words.
// It changes nothing if out is no terminal, or if the user wants no colors.
package tint

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"
)

// Wanted reports whether out is a terminal that supports codes, and NO_COLOR is empty.
func Wanted(out io.Writer) bool { return os.Getenv("NO_COLOR") == "" && Codes(out) }

// Codes reports whether out is a terminal that supports codes for colors and for drawing over its
// content.
func Codes(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// For returns a writer that colors lines and writes them to out, or out itself if no colors are
// wanted. Each write must consist of whole lines.
func For(out io.Writer) io.Writer {
	if !Wanted(out) {
		return out
	}
	return painter{out}
}

const (
	red, green, yellow, bold = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m"
	plain                    = "\x1b[0m"
)

type painter struct{ out io.Writer }

// Write implements io.Writer.
func (p painter) Write(text []byte) (int, error) {
	var painted bytes.Buffer
	for line := range strings.Lines(string(text)) {
		body := strings.TrimSuffix(line, "\n")
		painted.WriteString(paint(body) + line[len(body):])
	}
	if _, err := p.out.Write(painted.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

var (
	title = regexp.MustCompile(`^[A-Z][A-Z ]*[A-Z](?::|$)`)
	cells = regexp.MustCompile(`\S+(?: \S+)*`)
	sums  = regexp.MustCompile(`^\d+ things? (?:is|are) not ready`)
)

// words are the cells of a table that have a color.
var words = map[string]string{
	"True": green, "yes": green, "Healthy": green, "Ready": green, "Applied": green,
	"False": red, "no": red, "Unhealthy": red, "NotReady": red, "Failed": red,
	"Unknown": yellow, "unknown": yellow,
}

// paint colors one line.
func paint(line string) string {
	switch {
	case strings.HasPrefix(line, "All is ready, but"), strings.HasPrefix(line, "All that "), strings.HasPrefix(line, "There is no cluster yet"), strings.HasPrefix(line, "WORTH A LOOK"):
		return head(line, yellow)
	case strings.HasPrefix(line, "All is ready"):
		return head(line, green)
	case sums.MatchString(line), strings.HasPrefix(line, "NOT READY"), strings.HasPrefix(line, "PROBLEMS"):
		return head(line, red)
	case title.MatchString(line):
		return head(line, bold)
	}
	return cells.ReplaceAllStringFunc(line, func(cell string) string {
		word, _, _ := strings.Cut(cell, ",")
		if color := words[word]; color != "" {
			return color + cell + plain
		}
		return cell
	})
}

// head colors a line up to its first colon.
func head(line, color string) string {
	first, _, _ := strings.Cut(line, ":")
	return color + first + plain + line[len(first):]
}
