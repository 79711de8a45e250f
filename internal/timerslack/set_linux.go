package timerslack

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func set(slack time.Duration) error {
	now, err := get()
	if err != nil || now != untouched {
		return err
	}
	return apply(slack)
}

// apply gives all threads the slack, and those that they will make.
func apply(slack time.Duration) error {
	if _, _, errno := syscall.AllThreadsSyscall(syscall.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(slack.Nanoseconds()), 0); errno != 0 {
		return fmt.Errorf("set the timer slack: %w", errno)
	}
	return nil
}

// get is the slack of the calling thread.
func get() (time.Duration, error) {
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0, fmt.Errorf("ask for the timer slack: %w", err)
	}
	return time.Duration(now), nil
}
