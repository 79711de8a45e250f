package program

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"
)

// serveLog is the log file, in the data directory, of a control plane that runs in a terminal.
const serveLog = "flotillad.log"

// onScreen reports whether w is a terminal.
func onScreen(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// divert redirects standard error to a log, also for libraries that write to it without a
// logger. It returns a file for the screen, where a crash is shown as well, and a function
// that undoes the redirection.
func divert(log *os.File) (screen *os.File, restore func(), err error) {
	number, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("keep the screen: %w", err)
	}
	screen = os.NewFile(uintptr(number), os.Stderr.Name())
	if err := unix.Dup3(int(log.Fd()), int(os.Stderr.Fd()), 0); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("have standard error go to %s: %w", log.Name(), err), screen.Close())
	}
	_ = debug.SetCrashOutput(screen, debug.CrashOptions{}) // the log has it in any case
	return screen, func() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_ = unix.Dup3(number, int(os.Stderr.Fd()), 0)
		_ = screen.Close()
	}, nil
}

// whileRunning writes to a screen until a context ends: what parts log while they are being
// stopped is only of interest in the log.
type whileRunning struct {
	out  io.Writer
	done <-chan struct{}
}

// Write implements io.Writer.
func (w whileRunning) Write(text []byte) (int, error) {
	select {
	case <-w.done:
		return len(text), nil
	default:
		return w.out.Write(text)
	}
}

// line writes a line as those of the log that reach the screen.
func (w whileRunning) line(at time.Time, text string) {
	_, _ = fmt.Fprintf(w, "%s  %s\n", at.Format(time.TimeOnly), text) // nobody looks: the log has it
}

// starting returns the first line of output without a terminal: it takes seconds until the
// line that it is ready follows. otherwise describes the port if none is set.
func starting(what, dir, address string, port int, otherwise string) string {
	at := net.JoinHostPort(address, strconv.Itoa(port))
	if port == 0 {
		at = otherwise + " of " + address
	}
	return fmt.Sprintf("%s starts, with its data in %s, at %s\n", what, dir, at)
}

// greeting is the text that is shown once a control plane is ready.
type greeting struct {
	took            time.Duration
	url, kubeconfig string
	// log is the path of the complete log; empty if the log is on the screen.
	log string
	// first is true if this control plane was never started before.
	first bool
	// before is its URL in the last run; empty if there was none.
	before string
}

// moved returns a line that the control plane has another address than in the last run, so
// that clients may not find it; empty if it has not.
func (g greeting) moved() string {
	was, is := hostPort(g.before), hostPort(g.url)
	_, port, err := net.SplitHostPort(was)
	if g.before == "" || was == is || err != nil {
		return ""
	}
	return fmt.Sprintf("it was at %s before: agents and copies of its kubeconfig look for it there; --secure-port %s and the same --bind-address bring it back\n", was, port)
}

// lastAddress returns the URL of the control plane in a kubeconfig file; empty if there is
// none.
func lastAddress(kubeconfig string) string {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return ""
	}
	return config.Host
}

// text returns one line, or, on a screen, also the next steps.
func (g greeting) text() string {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "the control plane is ready after %.1fs: %s, administrator's kubeconfig %s\n", g.took.Seconds(), g.url, g.kubeconfig)
	out.WriteString(g.moved())
	if g.log == "" {
		return out.String()
	}
	_, _ = fmt.Fprintf(&out, "\nnext, in another shell:\n  export KUBECONFIG=%s\n", g.kubeconfig)
	if g.first {
		out.WriteString("  flotilla join NAME --cluster-kubeconfig FILE   # a cluster; to try: flotillad member --name NAME --data-dir DIR\n")
	}
	out.WriteString("  flotilla status                                # what is there, and what to do next\n")
	_, _ = fmt.Fprintf(&out, "\nFrom here on only what matters is shown; %s has all, -v 0 shows it here. Ctrl-C stops.\n\n", g.log)
	return out.String()
}

// openLog opens a log in a data directory, which it creates if missing. A log larger than
// logLimit is renamed, and replaces the one renamed before.
func openLog(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return out, nil
}
