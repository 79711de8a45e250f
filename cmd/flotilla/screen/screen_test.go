package screen_test

import (
	"os"
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/internal/pty"
)

// TestWidth: a terminal says how wide it is; a file and a pipe have no width.
func TestWidth(t *testing.T) {
	terminal, err := pty.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = terminal.Program.Close(), terminal.Screen.Close() }()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = reader.Close(), writer.Close() }()
	if got := screen.Width(terminal.Program); got != 80 {
		t.Errorf("a terminal of 80 columns has %d", got)
	}
	if got := screen.Width(writer); got != 0 {
		t.Errorf("a pipe has %d columns", got)
	}
}
