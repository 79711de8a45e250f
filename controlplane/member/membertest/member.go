package membertest

import (
	"context"
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

	stop func()
}

// Start runs a member and returns when workloads can be created in it. An empty name is "member", an empty DataDir
// a folder of the test. The member stops when the test ends, or with Stop.
func Start(t testing.TB, opts member.Options) *Member {
	t.Helper()
	if opts.Name == "" {
		opts.Name = "member"
	}
	if opts.DataDir == "" {
		opts.DataDir = t.TempDir()
	}
	ready, ended := make(chan member.Endpoint, 1), make(chan error, 1)
	opts.Ready = func(at member.Endpoint) { ready <- at }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { ended <- member.Run(ctx, opts) }()
	m := &Member{stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("member %s: %v", opts.Name, err)
		}
	})}
	t.Cleanup(m.Stop)

	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	select {
	case m.Endpoint = <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("member %s ended before it was ready: %v", opts.Name, err)
	case <-deadline.C:
		t.Fatalf("member %s is not ready after %s", opts.Name, readyTimeout)
	}
	var err error
	if m.Config, err = clientcmd.BuildConfigFromFlags("", m.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	m.Config.QPS = -1
	if m.Client, err = kubernetes.NewForConfig(m.Config); err != nil {
		t.Fatal(err)
	}
	return m
}

// Stop ends the member and waits for it. It may be called more than once.
func (m *Member) Stop() { m.stop() }
