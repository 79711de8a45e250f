package membertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-io/flotilla/controlplane/member"
)

// readyTimeout is long: on a small machine several members may start side by side.
const readyTimeout = 2 * time.Minute

// Member is a member that runs in the process of the test.
type Member struct {
	member.Endpoint
	// Config is the administrator's, without a client-side rate limit.
	Config *rest.Config
	// Client speaks to the member by Config.
	Client kubernetes.Interface

	stop func() error
}

// Start runs a member and returns when workloads can be created in it. An empty name is "member", an empty DataDir
// a folder of the test. The member stops when the test ends, or with Stop.
func Start(t testing.TB, opts member.Options) *Member {
	t.Helper()
	if opts.DataDir == "" {
		opts.DataDir = t.TempDir()
	}
	m, err := start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.stop(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func start(ctx context.Context, opts member.Options) (*Member, error) {
	if opts.Name == "" {
		opts.Name = "member"
	}
	ready, ended := make(chan member.Endpoint, 1), make(chan error, 1)
	opts.Ready = func(at member.Endpoint) { ready <- at }
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { ended <- member.Run(ctx, opts) }()
	m := &Member{stop: sync.OnceValue(func() error {
		cancel()
		if err := <-ended; err != nil {
			return fmt.Errorf("member %s: %w", opts.Name, err)
		}
		return nil
	})}
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	select {
	case m.Endpoint = <-ready:
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("member %s ended before it was ready: %w", opts.Name, err)
	case <-deadline.C:
		return nil, errors.Join(fmt.Errorf("member %s is not ready after %s", opts.Name, readyTimeout), m.stop())
	}
	if err := m.connect(); err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return m, nil
}

func (m *Member) connect() error {
	var err error
	if m.Config, err = clientcmd.BuildConfigFromFlags("", m.Kubeconfig); err != nil {
		return err
	}
	m.Config.QPS = -1
	m.Client, err = kubernetes.NewForConfig(m.Config)
	return err
}

// Stop ends the member and waits for it. It may be called more than once; what went wrong fails the test in its end.
func (m *Member) Stop() { _ = m.stop() }
