package program

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"k8s.io/klog/v2"

	"github.com/flotilla-io/flotilla/controlplane"
)

// What the server ends the process for is one line, and the code that of a call that did
// not work.
func TestLastWords(t *testing.T) {
	var out strings.Builder
	code, exit := -1, klog.OsExit
	klog.OsExit = func(c int) { code = c }
	t.Cleanup(func() {
		klog.OsExit = exit
		klog.SetLogFilter(nil)
	})
	klog.SetOutput(&strings.Builder{})
	klog.LogToStderr(false)
	lastWords(&out)
	klog.Errorf("Something else %d", 1)
	klog.Fatalf("PostStartHook %q failed: %v", "start", errors.New("the disk\nis full"))
	if want := "error: the API server cannot start: PostStartHook \"start\" failed: the disk is full\n"; out.String() != want || code != 1 {
		t.Errorf("code %d, %q, want 1, %q", code, out.String(), want)
	}
}

func TestWhatToDoWithoutRoom(t *testing.T) {
	o := &serveOptions{plane: controlplane.Options{DataDir: "/hub"}}
	cases := map[string]struct {
		err  error
		want string
	}{
		"the disk is full": {fmt.Errorf("data directory /hub: %w", syscall.ENOSPC), "data directory /hub: no space left on device: make room in /hub, then start it again"},
		"something else":   {errors.New("no"), "no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := o.explainFullDisk(tc.err).Error(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	if err := o.explainFullDisk(nil); err != nil {
		t.Errorf("without an error: %v", err)
	}
}
