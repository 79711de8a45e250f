package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// Options describe a fleet.
type Options struct {
	// Dir holds everything that the fleet keeps. It must not be shared.
	Dir string
	// Members are the names of the member clusters.
	Members []string
	// Nodes is how many nodes each member has; 0 means the program's default.
	Nodes int
	// HubArgs are added to the command line of the control plane.
	HubArgs []string
}

// Fleet is a running control plane with its members and its Git server, and the
// administrator's clients of them.
type Fleet struct {
	*localfleet.Fleet
	// Dir is the folder of the fleet.
	Dir string
	// Clients lead to the members, by their names, and Client to the control plane.
	Client  client.Client
	Clients map[string]client.Client
}

// Start starts the programs, and returns when all are ready. No member is joined yet.
func Start(ctx context.Context, opts Options) (*Fleet, error) {
	programs, err := localfleet.Start(ctx, localfleet.Options{
		Flotillad: Program("flotillad"), Dir: opts.Dir, Members: opts.Members, Nodes: opts.Nodes, HubArgs: opts.HubArgs,
	})
	if err != nil {
		return nil, err
	}
	f := &Fleet{Fleet: programs, Dir: opts.Dir, Clients: map[string]client.Client{}}
	if err := f.connect(); err != nil {
		return nil, errors.Join(err, programs.Stop())
	}
	return f, nil
}

// StartJoined starts the programs and joins all members, in the order of the options.
func StartJoined(ctx context.Context, opts Options) (*Fleet, error) {
	f, err := Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	for _, name := range opts.Members {
		if err := f.Join(ctx, name); err != nil {
			return nil, errors.Join(err, f.Stop())
		}
	}
	return f, nil
}

func (f *Fleet) connect() error {
	var err error
	if f.Client, err = Client(f.Hub); err != nil {
		return err
	}
	for name, member := range f.Members {
		if f.Clients[name], err = Client(member); err != nil {
			return err
		}
	}
	return nil
}

// Client returns an administrator's client of a program. It logs no warnings: they
// are for people.
func Client(p *localfleet.Process) (client.Client, error) {
	cfg, err := p.Config()
	if err != nil {
		return nil, err
	}
	cfg.WarningHandler = rest.NoWarnings{}
	return client.New(cfg, client.Options{Scheme: scheme.New()})
}

// Join joins a member as a user would; flags are further ones, and win.
func (f *Fleet) Join(ctx context.Context, name string, flags ...string) error {
	_, err := Run(ctx, nil, "flotilla", append([]string{
		"join", name, "--kubeconfig", f.Hub.Kubeconfig, "--cluster-kubeconfig", f.Members[name].Kubeconfig, "--cluster-context", name,
	}, flags...)...)
	return err
}

// NewMember prepares one more member, which no part of the fleet knows: whoever starts
// it stops it.
func (f *Fleet) NewMember(name string) (*localfleet.Process, error) {
	return localfleet.NewMember(localfleet.Options{Flotillad: Program("flotillad"), Dir: f.Dir}, name)
}

// NewReplica prepares one more control plane, in a folder of its own below that of the
// fleet; args say on which store. Whoever starts it stops it.
func (f *Fleet) NewReplica(ctx context.Context, name string, args ...string) (*localfleet.Process, error) {
	p, err := localfleet.NewHub(ctx, localfleet.Options{Flotillad: Program("flotillad"), Dir: filepath.Join(f.Dir, "replicas", name), HubArgs: args})
	if err != nil {
		return nil, err
	}
	p.Name += " " + name
	return p, nil
}

// NewAgent prepares an agent; args are its command line but for what belongs to the
// process itself. Whoever starts it stops it.
func (f *Fleet) NewAgent(ctx context.Context, name string, args ...string) (*localfleet.Process, error) {
	return localfleet.NewAgent(ctx, Program("flotilla-agent"), filepath.Join(f.Dir, "agents", name), args...)
}

// NewLoops prepares loops that run apart from the control plane that a kubeconfig leads
// to; args are further flags. Whoever starts them stops them.
func (f *Fleet) NewLoops(ctx context.Context, name, kubeconfig string, args ...string) (*localfleet.Process, error) {
	p, err := localfleet.NewAgent(ctx, Program("flotillad"), filepath.Join(f.Dir, "loops", name), append([]string{"controllers", "--kubeconfig", kubeconfig}, args...)...)
	if err != nil {
		return nil, err
	}
	p.Name = "loops " + name
	return p, nil
}

// Calm errs if the control plane or a member had to recover from a panic: they go on,
// later, so that no test need have noticed.
func (f *Fleet) Calm() error {
	return Calm(slices.AppendSeq([]*localfleet.Process{f.Hub}, maps.Values(f.Members))...)
}

// Calm errs if a program had to recover from a panic, by its log.
func Calm(programs ...*localfleet.Process) error {
	var all []error
	for _, p := range programs {
		log, err := os.ReadFile(p.Log)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(log) {
			if bytes.Contains(line, []byte("Observed a panic")) {
				all = append(all, fmt.Errorf("%s panicked: %s", p.Name, line))
				break
			}
		}
	}
	return errors.Join(all...)
}
