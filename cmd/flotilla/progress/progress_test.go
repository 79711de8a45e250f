package progress

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/pty"
)

// screen is a terminal, and what it has shown is read in steps.
func screen(t *testing.T) (program *os.File, shows func(want string)) {
	t.Helper()
	terminal, err := pty.Open(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = terminal.Program.Close(), terminal.Screen.Close() })
	return terminal.Program, func(want string) {
		t.Helper()
		if err := terminal.Screen.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(terminal.Screen, got); err != nil || string(got) != want {
			t.Fatalf("the terminal shows %q (%v), want %q", got, err, want)
		}
	}
}

func TestSeveralAreReportedAtOnce(t *testing.T) {
	out, shows := screen(t)
	line := New(out, []string{"east", "west"})
	shows("\r0 of 2 answered; waiting for east, west")
	line.Done("east")
	shows("\r1 of 2 answered; waiting for west      ")
	line.End()
	line.End() // it is taken away once
	line.Done("west")
	shows("\r" + strings.Repeat(" ", 33) + "\r")
	New(out, []string{"east"}).End() // one alone is not reported
	_, _ = out.WriteString("end")
	shows("end")
}

// TestOneIsReportedOnceItLasts steps the clock: servers that answer soon are not shown.
func TestOneIsReportedOnceItLasts(t *testing.T) {
	out, shows := screen(t)
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	soon := Late(out, now, []string{"east"})
	soon.Done("east")
	soon.End()
	late := Late(out, now, []string{"east", "west"})
	late.Done("east")
	now.Step(Delay)
	shows("\r1 of 2 answered; waiting for west")
	late.End()
	shows("\r" + strings.Repeat(" ", 33) + "\r")
}

func TestNothingIsReportedToAPipe(t *testing.T) {
	var out bytes.Buffer
	line := New(&out, []string{"east", "west"})
	line.Done("east")
	line.End()
	if out.Len() > 0 {
		t.Errorf("it is told %q", out.String())
	}
}

func TestTasksAreReportedInTheirOwnWords(t *testing.T) {
	out, shows := screen(t)
	line := Tasks(out, "moved", 3, []string{"web"})
	shows("\r2 of 3 moved; waiting for web")
	line.End()
	shows("\r" + strings.Repeat(" ", 29) + "\r")
}
