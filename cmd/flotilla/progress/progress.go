// Package progress shows on a terminal which servers have not answered yet, or which tasks are not
// done.
//
// In go the names of servers, and which of them have answered; out comes one line, which is erased
// at the end. It writes nothing to a pipe or a file.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/clock"
)

// Delay is how long people wait without an explanation.
const Delay = time.Second

// Line is the line of progress. It is safe for concurrent use.
type Line struct {
	out   io.Writer // nil if it is no terminal
	ended chan struct{}

	mutex   sync.Mutex
	shown   bool
	all     int
	waiting []string
	done    string // the word for the others
	width   int
}

// New shows at once that servers have not answered. It shows nothing for a single server.
func New(out io.Writer, servers []string) *Line {
	l := newLine(out, servers)
	if len(servers) < 2 {
		l.out = nil
	}
	l.begin()
	return l
}

// Late shows after Delay which servers have not answered.
func Late(out io.Writer, now clock.Clock, servers []string) *Line {
	l := newLine(out, servers)
	if l.out == nil || len(servers) == 0 {
		return l
	}
	over := now.After(Delay)
	go func() {
		select {
		case <-over:
			l.begin()
		case <-l.ended:
		}
	}()
	return l
}

// Tasks shows at once which tasks, out of all, are not done yet. done is the word for the others, as
// in "2 of 5 moved; waiting for web".
func Tasks(out io.Writer, done string, all int, waiting []string) *Line {
	l := newLine(out, waiting)
	l.all, l.done = all, done
	l.begin()
	return l
}

func newLine(out io.Writer, servers []string) *Line {
	l := &Line{ended: make(chan struct{}), all: len(servers), waiting: slices.Clone(servers), done: "answered"}
	if printers.IsTerminal(out) {
		l.out = out
	}
	return l
}

func (l *Line) begin() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.shown = l.out != nil
	l.show()
}

// Done records that a server has answered.
func (l *Line) Done(server string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(s string) bool { return s == server })
	l.show()
}

// End erases the line for good.
func (l *Line) End() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.shown {
		_, _ = fmt.Fprintf(l.out, "\r%s\r", strings.Repeat(" ", l.width))
	}
	l.out, l.shown = nil, false
	select {
	case <-l.ended:
	default:
		close(l.ended)
	}
}

func (l *Line) show() {
	if !l.shown {
		return
	}
	const names, room = 3, 78
	line := fmt.Sprintf("%d of %d %s", l.all-len(l.waiting), l.all, l.done)
	if n := len(l.waiting); n > 0 {
		line += "; waiting for " + strings.Join(l.waiting[:min(n, names)], ", ")
		if n > names {
			line += fmt.Sprintf(" and %d more", n-names)
		}
	}
	if len(line) > room {
		line = line[:room]
	}
	_, _ = fmt.Fprintf(l.out, "\r%s%s", line, strings.Repeat(" ", max(0, l.width-len(line))))
	l.width = len(line)
}
