// Package agents runs real agents of clusters in pull mode beside members that only
// answer.
//
// In go a control plane and the members; out come agents, each registered by a
// token of its own, and what they take of the machine. The package measures nothing
// of the control plane.
package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/fake"
	"github.com/flotilla-io/flotilla/bench/fakes"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/internal/localfleet"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

// Together is how many agents start at the same time.
const Together = 4

// timeout is how long an agent may take until it is ready.
const timeout = 2 * time.Minute

// Options say whose agents run, and where. All are required.
type Options struct {
	// Binary is the path of flotilla-agent, Dir a folder for all that the agents keep.
	Binary, Dir string
	Members     *fakes.Fleet
	// Hub and Config are an administrator's way to the control plane.
	Hub    client.Client
	Config *rest.Config
}

// Fleet is agents that run, in the order of their members.
type Fleet struct{ agents []*localfleet.Process }

// Start registers all members and returns once their agents are ready. If one is
// not, none is left.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	f := &Fleet{}
	var group errgroup.Group
	group.SetLimit(Together)
	for _, m := range o.Members.Members {
		agent, err := prepare(ctx, o, m)
		if err != nil {
			return nil, errors.Join(err, group.Wait(), f.Stop())
		}
		f.agents = append(f.agents, agent)
		group.Go(func() error {
			if err := agent.Start(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return agent.Ready(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

// Stop ends all agents, side by side.
func (f *Fleet) Stop() error {
	var group errgroup.Group
	for _, p := range f.agents {
		group.Go(p.Stop)
	}
	return group.Wait()
}

// CPUSeconds is what all agents have used together.
func (f *Fleet) CPUSeconds() (float64, error) {
	sum := 0.0
	for _, p := range f.agents {
		seconds, err := usage.CPUSeconds(p.PID())
		if err != nil {
			return 0, err
		}
		sum += seconds
	}
	return sum, nil
}

// Size is the memory of an agent, in MiB: resident, what of it is no file, and the
// most that was ever resident.
type Size struct{ Resident, Anonymous, Peak float64 }

// Sizes returns the memory of each agent.
func (f *Fleet) Sizes() ([]Size, error) {
	out := make([]Size, len(f.agents))
	for i, p := range f.agents {
		resident, err := usage.ResidentMiB(p.PID())
		anonymous, wrong := usage.ResidentBytes(p.PID())
		peak, failed := usage.PeakMiB(p.PID())
		if err := errors.Join(err, wrong, failed); err != nil {
			return nil, err
		}
		out[i] = Size{resident, anonymous / (1 << 20), peak}
	}
	return out, nil
}

// invite makes a token for a cluster and returns the flags by which its agent uses
// it. One token for all would be slowed down: so many requests look like a flood.
func invite(ctx context.Context, o Options, cluster string) ([]string, error) {
	secret, _, err := token.Create(ctx, o.Hub, token.Options{Cluster: cluster})
	if err != nil {
		return nil, err
	}
	authority, err := cert.ParseCertsPEM(o.Config.CAData)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the control plane: %w", err)
	}
	return []string{
		"--hub-endpoint", strings.TrimPrefix(o.Config.Host, "https://"), "--bootstrap-token", secret,
		"--discovery-token-ca-cert-hash", registration.CAHash(authority[0]),
		"--report-secrets", "None", "--cluster-success-threshold", "1s",
	}, nil
}

// prepare returns the agent of a member, with the kubeconfig that leads to it.
func prepare(ctx context.Context, o Options, m fake.Address) (*localfleet.Process, error) {
	args, err := invite(ctx, o, m.Name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, m.Name)
	file := filepath.Join(dir, "member.kubeconfig")
	agent, err := localfleet.NewAgent(ctx, o.Binary, dir, append(args, "--cluster-name", m.Name, "--kubeconfig", file)...)
	if err != nil {
		return nil, err
	}
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[m.Name] = &clientcmdapi.Cluster{Server: m.Endpoint, CertificateAuthorityData: o.Members.CA}
	cfg.AuthInfos[m.Name] = &clientcmdapi.AuthInfo{Token: o.Members.Token}
	cfg.Contexts[m.Name] = &clientcmdapi.Context{Cluster: m.Name, AuthInfo: m.Name}
	cfg.CurrentContext = m.Name
	if err := clientcmd.WriteToFile(*cfg, file); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", m.Name, err)
	}
	return agent, os.Chmod(file, 0o600)
}
