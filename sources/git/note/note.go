// Package note has the text of the notes that tell of commits, and where they are among the notes of a repository.
//
// In go texts and lines; out come texts in which what others have written stays. It reads and writes no repository.
package note

import (
	"bufio"
	"bytes"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Note is a commit's note: the status of the commit in each context.
type Note struct {
	// Lines has one entry per context.
	Lines []Line
	// other are lines that were not written by this package; they are kept.
	other []string
}

// Line is the status in one context, written as "<context>: <state>
// <description>".
type Line struct {
	// Context names the source of the status; it contains no ": " and no line
	// break.
	Context string
	// State is one word, such as success.
	State string
	// Description is one line of text; it may be empty.
	Description string
}

// String returns the line.
func (l Line) String() string {
	return strings.TrimRight(l.Context+": "+l.State+" "+l.Description, " ")
}

// Parse parses a note. Lines in any other form are kept unchanged.
func Parse(text []byte) Note {
	var n Note
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		line := lines.Text()
		context, rest, found := strings.Cut(line, ": ")
		state, description, _ := strings.Cut(rest, " ")
		if parsed := (Line{Context: context, State: state, Description: description}); found && context != "" && state != "" && parsed.String() == line && parsed == parsed.clean() {
			n.set(parsed)
			continue
		}
		if strings.TrimSpace(line) != "" {
			n.other = append(n.other, line)
		}
	}
	return n
}

// String returns the note's text: our lines sorted by context, then the others.
func (n Note) String() string {
	var b strings.Builder
	for _, l := range n.Lines {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	for _, l := range n.other {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.String()
}

// With returns the note with one context's line replaced or added.
func (n Note) With(line Line) Note {
	out := Note{Lines: slices.Clone(n.Lines), other: n.other}
	out.set(line.clean())
	return out
}

// clean returns the line in a form that parses back to itself.
func (l Line) clean() Line {
	l.Context = strings.ReplaceAll(excerpt.Line(l.Context), ": ", ":")
	l.State = strings.ReplaceAll(excerpt.Line(l.State), " ", "-")
	l.Description = excerpt.Line(l.Description)
	return l
}

// set inserts or replaces a context's line, in order; contexts are compared
// without regard to case.
func (n *Note) set(line Line) {
	i, found := slices.BinarySearchFunc(n.Lines, line, func(a, b Line) int {
		return strings.Compare(strings.ToLower(a.Context), strings.ToLower(b.Context))
	})
	if found {
		n.Lines[i] = line
		return
	}
	n.Lines = slices.Insert(n.Lines, i, line)
}

// Paths returns the paths where a commit's note may be. Git splits the notes'
// tree into more levels of two hex digits each as the number of notes grows.
func Paths(commit string) []string {
	paths := []string{commit}
	for level := 1; level <= maxFanout; level++ {
		var parts []string
		for i := range level {
			parts = append(parts, commit[2*i:2*i+2])
		}
		paths = append(paths, strings.Join(append(parts, commit[2*level:]), "/"))
	}
	return paths
}

// maxFanout is more levels than git makes for millions of notes.
const maxFanout = 3
