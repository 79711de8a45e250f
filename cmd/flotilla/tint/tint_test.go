package tint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/pty"
)

// TestPaint: words are colored by what they mean, and nothing else changes.
func TestPaint(t *testing.T) {
	for name, tc := range map[string]struct{ line, want string }{
		"what is well":                {"All is ready: clusters 2/2.", green + "All is ready" + plain + ": clusters 2/2."},
		"a fleet without a cluster":   {"There is no cluster yet, and 1 thing is worth a look: clusters 0/0.", yellow + "There is no cluster yet, and 1 thing is worth a look" + plain + ": clusters 0/0."},
		"what nobody carries":         {"All that a policy carries is ready, but 1 thing is worth a look: clusters 2/2.", yellow + "All that a policy carries is ready, but 1 thing is worth a look" + plain + ": clusters 2/2."},
		"what deserves a look":        {"All is ready, but 1 thing is worth a look: clusters 2/2.", yellow + "All is ready, but 1 thing is worth a look" + plain + ": clusters 2/2."},
		"what is not":                 {"2 things are not ready: clusters 0/2.", red + "2 things are not ready" + plain + ": clusters 0/2."},
		"a section":                   {"CLUSTERS", bold + "CLUSTERS" + plain},
		"a section of faults":         {"NOT READY", red + "NOT READY" + plain},
		"cells of a table":            {"  east  True   v1.36.4  Push", "  east  " + green + "True" + plain + "   v1.36.4  Push"},
		"a cell with more to say":     {"  east  False,tainted  v1", "  east  " + red + "False,tainted" + plain + "  v1"},
		"a word in a sentence":        {"     next: see whether it is True", "     next: see whether it is True"},
		"a cluster that is called so": {"  Nowhere  -", "  Nowhere  -"},
		"nothing":                     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, paint(tc.line)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFor: line ends are preserved, and only a terminal gets colour codes.
func TestFor(t *testing.T) {
	var out bytes.Buffer
	if For(&out) != &out {
		t.Error("a buffer is colored")
	}
	const text = "CLUSTERS\n  east  True\n\nno end"
	if n, err := (painter{&out}).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	codes := strings.NewReplacer(red, "", green, "", yellow, "", bold, "", plain, "")
	if diff := cmp.Diff(text, codes.Replace(out.String())); diff != "" {
		t.Errorf("the text has changed (-want +got):\n%s", diff)
	}
}

// TestCodes: a terminal takes them, unless it says that it is a dumb one.
func TestCodes(t *testing.T) {
	terminal, err := pty.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = terminal.Program.Close(), terminal.Screen.Close() }()
	for name, tc := range map[string]struct {
		term, noColor string
		codes, colors bool
	}{
		"a terminal":                            {"xterm", "", true, true},
		"a terminal of who likes no colors":     {"xterm", "1", true, false},
		"a dumb one, such as that of an editor": {"dumb", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", tc.term)
			t.Setenv("NO_COLOR", tc.noColor)
			if codes, colors := Codes(terminal.Program), Wanted(terminal.Program); codes != tc.codes || colors != tc.colors {
				t.Errorf("codes %t, colors %t", codes, colors)
			}
		})
	}
	if Codes(&bytes.Buffer{}) {
		t.Error("a buffer knows codes")
	}
}
