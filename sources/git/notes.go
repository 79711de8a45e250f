package git

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// NotesRef is the ref of the notes that WriteNote writes; git shows them with
// `git notes --ref=flotilla show` and `git log --show-notes=flotilla`.
const NotesRef = "refs/notes/flotilla"

// Note is a commit's note: the status of the commit in each context.
type Note struct {
	// Lines has one entry per context.
	Lines []NoteLine
	// other are lines that were not written by this package; they are kept.
	other []string
}

// NoteLine is the status in one context, written as "<context>: <state>
// <description>".
type NoteLine struct {
	// Context names the source of the status; it contains no ": " and no line
	// break.
	Context string
	// State is one word, such as success.
	State string
	// Description is one line of text; it may be empty.
	Description string
}

// String returns the line.
func (l NoteLine) String() string {
	return strings.TrimRight(l.Context+": "+l.State+" "+l.Description, " ")
}

// ParseNote parses a note. Lines in any other form are kept unchanged.
func ParseNote(text []byte) Note {
	var n Note
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		line := lines.Text()
		context, rest, found := strings.Cut(line, ": ")
		state, description, _ := strings.Cut(rest, " ")
		if parsed := (NoteLine{Context: context, State: state, Description: description}); found && context != "" && state != "" && parsed.String() == line && parsed == parsed.clean() {
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
func (n Note) With(line NoteLine) Note {
	out := Note{Lines: slices.Clone(n.Lines), other: n.other}
	out.set(line.clean())
	return out
}

// clean returns the line in a form that parses back to itself.
func (l NoteLine) clean() NoteLine {
	l.Context = strings.ReplaceAll(excerpt.Line(l.Context), ": ", ":")
	l.State = strings.ReplaceAll(excerpt.Line(l.State), " ", "-")
	l.Description = excerpt.Line(l.Description)
	return l
}

// set inserts or replaces a context's line, in order; contexts are compared
// without regard to case.
func (n *Note) set(line NoteLine) {
	i, found := slices.BinarySearchFunc(n.Lines, line, func(a, b NoteLine) int {
		return strings.Compare(strings.ToLower(a.Context), strings.ToLower(b.Context))
	})
	if found {
		n.Lines[i] = line
		return
	}
	n.Lines = slices.Insert(n.Lines, i, line)
}

// notePaths returns the paths where a commit's note may be. Git splits the notes'
// tree into more levels of two hex digits each as the number of notes grows.
func notePaths(commit string) []string {
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

func checkCommit(commit string) error {
	if !commitHash.MatchString(commit) {
		return fmt.Errorf("%w: commit %q must be 40 lower-case hex digits", ErrRef, commit)
	}
	return nil
}
