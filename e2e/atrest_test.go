package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/timerslack"
)

// TestAtRest: the kernel wakes the control plane, as it is built, for many of its timers at
// once, and for still more of them while nobody wants anything. A build that links C cannot
// ask for that, and its rest costs several times as much.
func TestAtRest(t *testing.T) {
	own, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Skip("this machine does not tell the timer slack of a process: ", err)
	}
	if was := parseSlack(t, own); was != 50*time.Microsecond {
		t.Skipf("the test was started with a slack of %s, which the control plane leaves as it is", was)
	}
	eventually(t, time.Minute, "the control plane rests", slackOfAll(t, timerslack.Resting))
	the.Kubectl(t, "", "create", "configmap", "-n", "default", fleet.NameOf(t))
	eventually(t, time.Minute, "it is as exact as usual while somebody writes", func(ctx context.Context) error {
		the.Kubectl(t, "", "annotate", "configmap", "-n", "default", fleet.NameOf(t), "--overwrite", "at="+time.Now().Format(time.RFC3339Nano))
		return slackOfAll(t, timerslack.Usual)(ctx)
	})
	the.Kubectl(t, "", "delete", "configmap", "-n", "default", fleet.NameOf(t))
	eventually(t, time.Minute, "it rests again", slackOfAll(t, timerslack.Resting))
}

// slackOfAll is nil while every thread of the control plane has this slack.
func slackOfAll(t *testing.T, want time.Duration) func(context.Context) error {
	return func(context.Context) error {
		threads, err := filepath.Glob("/proc/" + strconv.Itoa(the.Hub.PID()) + "/task/*")
		if err != nil || len(threads) == 0 {
			return fmt.Errorf("%d threads of the control plane found; error: %w", len(threads), err)
		}
		for _, thread := range threads {
			text, err := os.ReadFile("/proc/" + filepath.Base(thread) + "/timerslack_ns")
			if errors.Is(err, os.ErrNotExist) {
				continue // it has ended
			}
			if err != nil {
				return err
			}
			if got := parseSlack(t, text); got != want {
				return fmt.Errorf("thread %s has a slack of %s, want %s", filepath.Base(thread), got, want)
			}
		}
		return nil
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
