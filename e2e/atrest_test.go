package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/internal/timerslack"
)

// TestAtRest: the kernel wakes the control plane, as it is built, for many of its timers at
// once. A build that links C cannot ask for that, and its rest costs twice as much.
func TestAtRest(t *testing.T) {
	own, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Skip("this machine does not tell the timer slack of a process: ", err)
	}
	if was := parseSlack(t, own); was != 50*time.Microsecond {
		t.Skipf("the test was started with a slack of %s, which the control plane leaves as it is", was)
	}
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(the.Hub.PID()) + "/task/*")
	if err != nil || len(threads) == 0 {
		t.Fatalf("%d threads of the control plane found; error: %v", len(threads), err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile("/proc/" + filepath.Base(thread) + "/timerslack_ns")
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := parseSlack(t, text); got != timerslack.Usual {
			t.Errorf("thread %s of the control plane has a slack of %s, want %s", filepath.Base(thread), got, timerslack.Usual)
		}
	}
}

func parseSlack(t *testing.T, text []byte) time.Duration {
	t.Helper()
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ns)
}
