// Package pty opens pseudo terminals, for tests of what programs say to somebody who looks.
//
// In goes a size; out come both ends: the one that a program takes for its terminal, and the
// one where what it writes there is read. It starts no program.
package pty

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Terminal is a pseudo terminal. Its two ends are closed by the caller, each once.
type Terminal struct {
	// Screen is read to see what is written. Reading ends with an error once the last
	// program has closed its end.
	Screen *os.File
	// Program is what programs get for their standard streams.
	Program *os.File
}

// Open returns a terminal of a size, in characters. What is written to it comes out as it is:
// line ends are not changed, and nothing is echoed.
func Open(columns, rows uint16) (t *Terminal, err error) {
	t = &Terminal{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open a pseudo terminal: %w", err), t.close())
		}
	}()
	if t.Screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return t, err
	}
	var number int
	err = control(t.Screen, func(fd int) (err error) {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	if err != nil {
		return t, err
	}
	if t.Program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return t, err
	}
	return t, control(t.Program, func(fd int) error {
		state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		state.Oflag &^= unix.OPOST
		state.Lflag &^= unix.ECHO
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, state); err != nil {
			return err
		}
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
}

// close gives back what was opened of a terminal that is not whole.
func (t *Terminal) close() error {
	var errs []error
	for _, end := range []*os.File{t.Screen, t.Program} {
		if end != nil {
			errs = append(errs, end.Close())
		}
	}
	return errors.Join(errs...)
}

// control asks the kernel about a file, which stays as it is for the runtime.
func control(file *os.File, ask func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = ask(int(fd)) }); err != nil {
		return err
	}
	return failed
}
