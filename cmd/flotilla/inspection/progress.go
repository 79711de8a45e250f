package inspection

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/cli-runtime/pkg/printers"
)

// progress is one line on a terminal that says who has not answered yet. In a pipe
// it says nothing.
type progress struct {
	out io.Writer

	mutex   sync.Mutex
	all     int
	waiting []string
	width   int
}

// newProgress starts to wait for servers. It says nothing about a single one.
func newProgress(out io.Writer, servers []string) *progress {
	p := &progress{all: len(servers), waiting: slices.Clone(servers)}
	if len(servers) > 1 && printers.IsTerminal(out) {
		p.out = out
		p.show()
	}
	return p
}

// done says that a server has answered.
func (p *progress) done(server string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(s string) bool { return s == server })
	p.show()
}

// end takes the line away.
func (p *progress) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.out == nil {
		return
	}
	_, _ = fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.width))
	p.out = nil
}

func (p *progress) show() {
	if p.out == nil {
		return
	}
	const names, room = 3, 78
	line := fmt.Sprintf("%d of %d answered", p.all-len(p.waiting), p.all)
	if n := len(p.waiting); n > 0 {
		line += "; waiting for " + strings.Join(p.waiting[:min(n, names)], ", ")
		if n > names {
			line += fmt.Sprintf(" and %d more", n-names)
		}
	}
	if len(line) > room {
		line = line[:room]
	}
	_, _ = fmt.Fprintf(p.out, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-len(line))))
	p.width = len(line)
}
