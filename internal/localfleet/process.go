package localfleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Process is one long-running program of the fleet. It may be stopped and
// started again on the same folder.
type Process struct {
	// Name is what messages call it.
	Name string
	// Kubeconfig is the file that the program writes when it has its keys.
	Kubeconfig string
	// Log is the file that takes what the program prints.
	Log string
	// Metrics is the URL of an agent's metrics, which anybody on this machine may read.
	Metrics string

	health string // URL that reports whether it is ready; empty: that of its API
	binary string
	args   []string
	cmd    *exec.Cmd
	exited chan struct{}
}

// answerTimeout is how long a program may take to say whether it is ready.
const answerTimeout = 2 * time.Second

// stopGrace is how long a program may take to end by itself. On a machine that is busy
// with other things a control plane takes many times the second that it needs.
const stopGrace = time.Minute

// Start runs the program; it does not wait until it is ready.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.binary, p.args...) //nolint:noctx // it outlives the call; Stop and Kill end it
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own keeps the terminal's Ctrl-C from it: it is stopped in
	// order. The death signal keeps it from outliving a killed parent.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The death signal comes when the thread that forked ends, not the
		// process: this one stays until the program is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.cmd, p.exited = cmd, exited
	return nil
}

// PID is the process id, 0 before the first start.
func (p *Process) PID() int {
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Ready waits until the program answers /readyz. It fails at once, with the
// end of its log, when the program has ended.
func (p *Process) Ready(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.exited:
			return false, fmt.Errorf("%s ended before it was ready; the end of %s:\n%s", p.Name, p.Log, p.tail())
		default:
		}
		return p.answers(ctx), nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s is not ready: %w; its log is %s", p.Name, context.Cause(ctx), p.Log)
	}
	return err
}

// Config returns the administrator's way into the program's API.
func (p *Process) Config() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", p.Name, err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// Stop asks the program to end and waits; after a grace period it is killed.
func (p *Process) Stop() error {
	if p.cmd == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		_ = p.Kill()
		return fmt.Errorf("%s did not end within %s and was killed", p.Name, stopGrace)
	}
}

// Kill ends the program as a crash would.
func (p *Process) Kill() error {
	if p.cmd == nil {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// Ended reports whether the program was started and is not running any more.
func (p *Process) Ended() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Pause freezes the program, as a hanging machine would be.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused program go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", sig, p.Name, err)
	}
	return nil
}

func (p *Process) answers(ctx context.Context) bool {
	if p.health != "" {
		return healthy(ctx, p.health)
	}
	if _, err := os.Stat(p.Kubeconfig); err != nil {
		return false
	}
	cfg, err := p.Config()
	if err != nil {
		return false
	}
	cfg.Timeout = answerTimeout
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return false
	}
	_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err == nil
}

// healthy reports whether something answers that all is well.
func healthy(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}

// tail is the end of the log, for messages.
func (p *Process) tail() []byte {
	const size = 2000
	log, err := os.ReadFile(p.Log)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(log[max(0, len(log)-size):])
}

// Ports that no system hands out by itself: one that was found free stays so
// until the program that it is for listens on it.
const firstPort, ports = 20000, 12000

// FreePort returns a loopback port that nobody listens on right now.
func FreePort(ctx context.Context) (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(ports) //nolint:gosec // no secret
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// newProcess prepares a program whose folder is made here.
func newProcess(name, binary, dir, kubeconfig string, args ...string) (*Process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", name, err)
	}
	return &Process{
		Name:       name,
		Kubeconfig: filepath.Join(dir, kubeconfig),
		Log:        filepath.Join(dir, "log"),
		binary:     binary,
		args:       args,
	}, nil
}
