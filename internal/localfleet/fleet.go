package localfleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// LoopbackSources is for HubArgs: it lets Git servers and forges be on this machine,
// as the fleet's own Git server is.
const LoopbackSources = egress.Flag + "=127.0.0.0/8"

// Options describe a fleet.
type Options struct {
	// Flotillad is the path of the program.
	Flotillad string
	// Dir holds everything that the fleet keeps. It must not be shared.
	Dir string
	// Members are the names of the member clusters.
	Members []string
	// Nodes is how many nodes each member has; 0 means the program's default.
	Nodes int
	// HubArgs are added to the command line of the control plane.
	HubArgs []string
	// Progress is called when a part of the fleet is ready; nil is not called.
	Progress func(part string, took time.Duration)
}

// Fleet is a running control plane with its members and its Git server. The
// members are not joined.
type Fleet struct {
	// Hub is the control plane.
	Hub *Process
	// Members are the member clusters by name.
	Members map[string]*Process
	// Git serves the repositories of the fleet.
	Git *gitserver.Server
}

// Start starts everything side by side and returns when all of it is ready.
// If a part fails, the others are stopped.
func Start(ctx context.Context, opts Options) (*Fleet, error) {
	fleet, err := prepare(ctx, opts)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	var progress sync.Mutex
	for _, p := range fleet.processes() {
		begin := time.Now()
		if err := p.Start(); err != nil {
			return nil, errors.Join(err, fleet.Stop())
		}
		group.Go(func() error {
			if err := p.Ready(ctx); err != nil {
				return err
			}
			if opts.Progress != nil {
				progress.Lock()
				defer progress.Unlock()
				opts.Progress(p.Name, time.Since(begin))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, fleet.Stop())
	}
	return fleet, nil
}

// Stop ends all parts side by side, the control plane among them.
func (f *Fleet) Stop() error {
	var group errgroup.Group
	for _, p := range f.processes() {
		group.Go(p.Stop)
	}
	err := group.Wait()
	if f.Git != nil {
		err = errors.Join(err, f.Git.Close())
	}
	return err
}

func (f *Fleet) processes() []*Process {
	list := []*Process{f.Hub}
	for _, p := range f.Members {
		list = append(list, p)
	}
	return list
}

func prepare(ctx context.Context, opts Options) (*Fleet, error) {
	gitRoot := filepath.Join(opts.Dir, "git")
	if err := os.MkdirAll(gitRoot, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the Git server: %w", err)
	}
	hub, err := NewHub(ctx, opts)
	if err != nil {
		return nil, err
	}
	fleet := &Fleet{Hub: hub, Members: map[string]*Process{}}
	for _, name := range opts.Members {
		if fleet.Members[name], err = NewMember(opts, name); err != nil {
			return nil, err
		}
	}
	fleet.Git, err = gitserver.Start(ctx, gitRoot, "127.0.0.1:0")
	return fleet, err
}

// NewHub prepares a control plane, in a folder below that of the options: it belongs to
// no fleet, and whoever starts it stops it.
func NewHub(ctx context.Context, opts Options) (*Process, error) {
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(opts.Dir, "hub")
	args := append([]string{"serve", "--data-dir", dir, "--secure-port", strconv.Itoa(port)}, opts.HubArgs...)
	return newProcess("control plane", opts.Flotillad, dir, "admin.kubeconfig", args...)
}

// NewMember prepares one more member cluster, in a folder below that of the
// options: it belongs to no fleet, and whoever starts it stops it. The member takes
// a free port and keeps it.
func NewMember(opts Options, name string) (*Process, error) {
	dir := filepath.Join(opts.Dir, "members", name)
	args := []string{"member", "--name", name, "--data-dir", dir}
	if opts.Nodes > 0 {
		args = append(args, "--nodes", strconv.Itoa(opts.Nodes))
	}
	return newProcess("member "+name, opts.Flotillad, dir, "kubeconfig", args...)
}

// NewAgent prepares an agent that runs beside a member: the path of flotilla-agent,
// a folder that it must not share, and what else is on its command line. It is
// ready once it has what it works with; whoever starts it stops it. Loops that run
// apart from their control plane are prepared the same way.
func NewAgent(ctx context.Context, binary, dir string, args ...string) (*Process, error) {
	var addresses [2]string
	for i := range addresses {
		port, err := FreePort(ctx)
		if err != nil {
			return nil, err
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	args = append(args, "--data-dir", filepath.Join(dir, "data"), "--health-probe-bind-address", addresses[0], "--metrics-bind-address", addresses[1])
	p, err := newProcess("agent "+filepath.Base(dir), binary, dir, "", args...)
	if err != nil {
		return nil, err
	}
	p.health, p.Metrics = "http://"+addresses[0]+"/readyz", "http://"+addresses[1]+"/metrics"
	return p, nil
}
