package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flotilla-io/flotilla/sources/build"
)

// Limits bound one process. Zero fields take the default.
type Limits struct {
	// Memory bounds the process's data segment, in bytes. Default 1 GiB.
	Memory int64
	// CPU bounds the process's CPU time. Default 5 min.
	CPU time.Duration
	// Output bounds the process's answer, in bytes. Default 512 MiB.
	Output int64
}

func (l Limits) withDefaults() Limits {
	if l.Memory == 0 {
		l.Memory = 1 << 30
	}
	if l.CPU == 0 {
		l.CPU = 5 * time.Minute
	}
	if l.Output == 0 {
		l.Output = 512 << 20
	}
	return l
}

// Self is the path of the running program, which is valid even after its file was
// replaced.
const Self = "/proc/self/exe"

// Runner starts processes. It may be used from several goroutines.
type Runner struct {
	command []string
	limits  Limits
}

var _ build.Runner = (*Runner)(nil)

// New returns a Runner that starts the command for each build; the command must
// call Serve.
func New(limits Limits, command ...string) *Runner {
	return &Runner{command: command, limits: limits.withDefaults()}
}

const (
	// closing is how long to wait for the pipes of a killed process to close.
	closing = 5 * time.Second
	// keptErrors is how much of the process's standard error is kept, in bytes.
	keptErrors = 16 << 10
)

// Run implements build.Runner: it starts a process, and returns when the process
// has ended. Errors: those of a build, among them build.ErrTooLarge if the
// process reached its limits, and the cause of an ended context. Any other error
// is about this machine, not about the files.
func (r *Runner) Run(ctx context.Context, job build.Job) ([][]byte, error) {
	// The child must die with this process. The kernel watches the thread that
	// started it (PDEATHSIG), so the goroutine stays locked to it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, r.command[0], r.command[1:]...) //nolint:gosec // the program itself
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=" + processors}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return kill(cmd) }
	cmd.WaitDelay = closing
	stderr := &head{most: keptErrors}
	cmd.Stderr = stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the process of a build: %w", err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the process of a build: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the process of a build: %w", err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// A child that does not read all of it reports why, or is about to end.
		_ = send(input, order{Limits: r.limits, Job: job})
		_ = input.Close()
	}()
	objects, readErr := receive(&io.LimitedReader{R: output, N: r.limits.Output}, job.Limits.Objects, job.Input.Reveal)
	if readErr != nil && !errors.Is(readErr, errCut) {
		_ = kill(cmd) // it may still be writing
	}
	waitErr := cmd.Wait()
	<-sent
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("build: %w", context.Cause(ctx))
	case readErr != nil && !errors.Is(readErr, errCut):
		return nil, readErr
	case waitErr != nil || readErr != nil:
		return nil, r.explain(waitErr, stderr.kept.String())
	default:
		return objects, nil
	}
}

// processors is how many processors a build may use.
const processors = "1"

// kill kills a process and its process group.
func kill(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// explain returns why a process ended without an answer.
func (r *Runner) explain(err error, stderr string) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, _ := exit.Sys().(syscall.WaitStatus)
		switch {
		case status.Signaled() && r.spent(exit.ProcessState):
			return fmt.Errorf("%w: it needs more than %s of computing; split the folder into several Kustomizations", build.ErrTooLarge, r.limits.CPU)
		case status.Signaled() && status.Signal() == syscall.SIGKILL:
			return errors.New("the process of the build was killed, as a machine does that runs out of memory")
		case strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory"):
			return fmt.Errorf("%w: it needs more than %d MiB; split the folder into several Kustomizations", build.ErrTooLarge, r.limits.Memory>>20)
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	if first == "" {
		first = "it said nothing"
	}
	return fmt.Errorf("%w: its process ended without an answer (%v): %s", build.ErrKustomize, err, strconv.QuoteToGraphic(first))
}

// sampled is how much less CPU time the kernel may report than it counted for the
// limit: it samples periodically, and separately for each thread.
const sampled = 500 * time.Millisecond

// spent reports whether a process has used up its CPU time, with a tolerance for
// how the kernel counts.
func (r *Runner) spent(p *os.ProcessState) bool {
	return p.UserTime()+p.SystemTime()+sampled >= r.limits.CPU*9/10
}

// head keeps the first bytes written to it and discards the rest.
type head struct {
	kept bytes.Buffer
	most int
}

// Write implements io.Writer.
func (t *head) Write(p []byte) (int, error) {
	if room := t.most - t.kept.Len(); room > 0 {
		t.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
