package program

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"k8s.io/klog/v2"

	"github.com/flotilla-io/flotilla/internal/command"
)

// ending records why Kubernetes' server ends the process when a part of its start fails. The
// server logs that at a level that is not shown.
type ending struct {
	out io.Writer
	why atomic.Pointer[string]
}

// lastWords makes a process that Kubernetes' server ends print the reason, in one line on
// out, and exit with the code for a failure. It is for processes with one server.
func lastWords(out io.Writer) {
	e, exit := &ending{out: out}, klog.OsExit
	klog.SetLogFilter(e)
	klog.OsExit = func(int) {
		e.report()
		exit(command.Failed)
	}
}

func (e *ending) report() {
	if why := e.why.Load(); why != nil {
		_, _ = fmt.Fprintf(e.out, "error: the API server cannot start: %s\n", *why)
	}
}

// FilterF implements klog.LogFilter.
func (e *ending) FilterF(format string, args []any) (string, []any) {
	if strings.HasPrefix(format, "PostStartHook") { // a fatal line follows
		why := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
		e.why.Store(&why)
	}
	return format, args
}

// Filter implements klog.LogFilter.
func (*ending) Filter(args []any) []any { return args }

// FilterS implements klog.LogFilter.
func (*ending) FilterS(msg string, keysAndValues []any) (string, []any) { return msg, keysAndValues }
