package pty_test

import (
	"testing"

	"golang.org/x/term"

	"github.com/flotilla-io/flotilla/internal/pty"
)

// TestOpen: what is written to a terminal is read from its screen, as it is.
func TestOpen(t *testing.T) {
	terminal, err := pty.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Screen.Close() }()
	const reported = "one\ntwo\n"
	if _, err := terminal.Program.WriteString(reported); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 64)
	n, err := terminal.Screen.Read(got)
	if err != nil || string(got[:n]) != reported {
		t.Errorf("the screen has %q, %v, want %q", got[:n], err, reported)
	}
	if columns, rows, err := term.GetSize(int(terminal.Program.Fd())); err != nil || columns != 80 || rows != 24 {
		t.Errorf("it is %d×%d, %v", columns, rows, err)
	}
	if err := terminal.Program.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := terminal.Screen.Read(got); err == nil {
		t.Errorf("after the end of the program the screen has %q", got[:n])
	}
}
