package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/housekeeping"
	"github.com/flotilla-io/flotilla/controlplane/member/kubelet"
	"github.com/flotilla-io/flotilla/controlplane/pki"
)

const (
	// stopTimeout is how long a stop waits for the workers, and then for the API server.
	stopTimeout = 2 * time.Second
	// graceOfNodes is long against their leases: a member that was paused is not a member that lost its nodes.
	graceOfNodes = 5 * time.Minute
	readyPoll    = 50 * time.Millisecond
)

// member is a member that runs.
type member struct {
	opts   Options
	dir    *datadir.Dir
	id     *identity
	pki    *pki.Store
	server *apiserver.Server
}

// Run runs a member until the context ends, which is a nil error, or until a part of it fails.
//
// Errors: ErrInvalid for options that cannot be used, datadir.ErrInUse where another member runs on the folder.
func Run(ctx context.Context, opts Options) (err error) {
	if err := opts.complete(); err != nil {
		return err
	}
	dir, err := datadir.Open(opts.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if opts.Starting != nil {
		opts.Starting()
	}
	m := &member{opts: opts, dir: dir}
	if m.id, err = loadIdentity(dir, opts); err != nil {
		return err
	}
	if m.pki, err = pki.Open(dir.Path("pki"), clock.RealClock{}); err != nil {
		return err
	}
	// A member is for trying things out: what a crash of the machine would lose of it can be made again.
	store, err := etcd.Start(ctx, etcd.Options{DataDir: dir.Path("etcd"), UnsafeNoFsync: true, Log: logr.FromContextOrDiscard(ctx)})
	if err != nil {
		return err
	}
	defer store.Stop()
	m.server, err = apiserver.New(ctx, apiserver.Options{
		DataDir:     dir.Path("apiserver"),
		PKI:         m.pki,
		Etcd:        apiserver.Etcd{Servers: store.Endpoints()},
		BindAddress: opts.BindAddress,
		SecurePort:  m.id.SecurePort,
		ServiceCIDR: m.id.ServiceCIDR,
	})
	if err != nil {
		return err
	}
	return m.serve(ctx)
}

// serve runs the API server and, once it answers, what works on it. It stops them in the other order, so that no
// worker sees a server that is half gone.
func (m *member) serve(ctx context.Context) error {
	m.id.SecurePort = m.server.Port()
	if err := m.id.save(); err != nil {
		return err
	}
	serving, stopServing := detached(ctx)
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- m.server.Run(serving) }()

	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	worked := make(chan error, 1)
	go func() { worked <- m.work(working) }()

	select {
	case err := <-served:
		stopWorking()
		return errors.Join(err, within(stopTimeout, worked))
	case err := <-worked:
		stopServing()
		if ctx.Err() != nil {
			err = nil // whatever error a worker returned when it was asked to stop
		}
		return errors.Join(err, within(stopTimeout, served))
	}
}

// work brings the cluster to life and keeps it so until the context ends.
func (m *member) work(ctx context.Context) error {
	if err := m.server.WaitServing(ctx); err != nil {
		return err
	}
	config := m.server.LoopbackConfig()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("member client: %w", err)
	}
	if err := furnish(ctx, client, m.opts, m.id.pods); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(m.opts.host(), "0"))
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	defer func() { _ = listener.Close() }()
	certificate, err := m.pki.Server("kubelet", m.opts.host())
	if err != nil {
		return err
	}
	nodes := kubelets{member: config, name: m.opts.Name, address: m.opts.host(), podCIDR: m.id.PodCIDR, port: listener.Addr().(*net.TCPAddr).Port}
	if err := nodes.moved(ctx, client); err != nil {
		return err
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group wait.Group
	defer group.Wait()
	run := func(part func(context.Context) error) {
		group.Start(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	run(func(ctx context.Context) error { return housekeeping.RunControllers(ctx, m.controllers()) })
	run(func(ctx context.Context) error { return housekeeping.RunScheduler(ctx, config) })
	run(nodes.start)
	run(func(ctx context.Context) error {
		return kubelet.Run(ctx, kubelet.Options{Listener: listener, CertFile: certificate, CAFile: m.pki.CAFile()})
	})
	run(newProvider(client).run)
	run(func(ctx context.Context) error {
		m.pki.Run(ctx, func(err error) { logr.FromContextOrDiscard(ctx).Error(err, "renew certificates") })
		return nil
	})
	run(func(ctx context.Context) error { return m.announce(ctx, client) })
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func (m *member) controllers() housekeeping.ControllerOptions {
	return housekeeping.ControllerOptions{
		Config:                m.server.LoopbackConfig(),
		Controllers:           housekeeping.MemberControllers(),
		ServiceAccountKeyFile: m.pki.ServiceAccountKeyFile(),
		RootCAFile:            m.pki.CAFile(),
		SigningCertFile:       m.pki.SignerCAFile(),
		SigningKeyFile:        m.pki.CAKeyFile(),
		StopTimeout:           stopTimeout,
		Nodes: &housekeeping.NodeOptions{
			PodCIDR:            m.id.PodCIDR,
			NodeMaskSize:       nodeMaskSize,
			ServiceCIDR:        m.id.ServiceCIDR,
			MonitorGracePeriod: graceOfNodes,
		},
	}
}

// announce waits until workloads can be created, and only then hands out the kubeconfig.
func (m *member) announce(ctx context.Context, client kubernetes.Interface) error {
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		return usable(ctx, client, m.opts.Nodes), nil
	})
	if err != nil {
		return err
	}
	endpoint := Endpoint{Server: m.server.URL(), Kubeconfig: m.dir.Path("kubeconfig")}
	if err := m.pki.WriteKubeconfig(endpoint.Kubeconfig, pki.Kubeconfig{
		Context:  m.opts.Name,
		Server:   endpoint.Server,
		Identity: pki.Identity{User: "admin", Groups: []string{"system:masters"}},
	}); err != nil {
		return err
	}
	if m.opts.Ready != nil {
		m.opts.Ready(endpoint)
	}
	return nil
}

// usable reports whether pods can be made and find a node. An answer that does not come is a no.
func usable(ctx context.Context, client kubernetes.Interface, want int) bool {
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return false
	}
	if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
		return false
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	ready := 0
	for i := range nodes.Items {
		if takesPods(&nodes.Items[i]) {
			ready++
		}
	}
	return ready >= want
}

func takesPods(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// detached has the values of the context and an end of its own.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(ctx))
}

// within waits for a part to end, but not for ever: the process is about to.
func within(timeout time.Duration, ended <-chan error) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return nil
	}
}

func (e Endpoint) String() string { return e.Server + ", kubeconfig " + strconv.Quote(e.Kubeconfig) }
