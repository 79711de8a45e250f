package program

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/internal/registration/token"
	"github.com/flotilla-io/flotilla/reconciler/agents/agentstest"
)

// site is the name of the cluster on the stage.
const site1 = "site-1"

// stage is a hub, a member, and a link between the hub and the member's agent.
type stage struct {
	life   *testing.T // of the whole test: agents go on from one step to the next
	dir    string     // of the hub
	env    *servertest.Env
	loops  func() error // ends those of the hub
	link   *link
	member *membertest.Member
	edge   client.Client
	folder string // of the agent
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	s := &stage{life: t, dir: t.TempDir(), folder: filepath.Join(t.TempDir(), "agent"), link: newLink(t)}
	s.member = membertest.Start(t, member.Options{Name: site1, Nodes: 1})
	var err error
	if s.edge, err = client.New(s.member.Config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	s.raise(t, s.dir)
	t.Cleanup(func() { s.lower(t) })
	return s
}

// raise starts a hub on a folder, and plugs the link in.
func (s *stage) raise(t *testing.T, dir string) {
	t.Helper()
	env, err := servertest.StartIn(context.WithoutCancel(t.Context()), dir)
	if err != nil {
		t.Fatal(err)
	}
	s.env = env
	admin, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	s.loops = env.StartLoops(t, agentstest.Register) // what clusters in pull mode need of the hub
	s.link.plug(strings.TrimPrefix(admin.Host, "https://"))
}

// lower stops the hub.
func (s *stage) lower(t *testing.T) {
	t.Helper()
	if s.env == nil {
		return
	}
	_ = s.loops()
	if err := s.env.Stop(); err != nil {
		t.Error(err)
	}
	s.env = nil
}

// token makes a bootstrap token for the site.
func (s *stage) token(t *testing.T) (with, hash string) {
	t.Helper()
	made, _, err := token.Create(t.Context(), s.env.Hub, token.Options{Cluster: site1, Properties: identity.Properties{Region: "north", ApplyAs: "Author"}})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", s.env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.ParseCertsPEM(admin.CAData)
	if err != nil {
		t.Fatal(err)
	}
	return made, registration.CAHash(ca[0])
}

// process is an agent that runs in this process.
type process struct {
	log  *lines
	end  context.CancelFunc
	done chan error
}

// parse reads flags as the program does.
func parse(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// run starts the agent of the site.
func (s *stage) run(t *testing.T, args ...string) *process {
	t.Helper()
	o := parse(t, append([]string{
		"--cluster-name", site1, "--kubeconfig", s.member.Kubeconfig, "--data-dir", s.folder,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--cluster-success-threshold", "1s",
	}, args...)...)
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	o.hub.pause = time.Second
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &process{log: &lines{}, end: cancel, done: make(chan error, 1)}
	go func() { p.done <- o.run(ctx, p.log.logger()) }()
	s.life.Cleanup(func() { _ = p.stop() })
	return p
}

// stop ends the agent and returns what it ended with. It may be called more than
// once.
func (p *process) stop() error {
	p.end()
	err := <-p.done
	p.done <- err
	return err
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lines) logger() logr.Logger { return logr.FromSlogHandler(slog.NewTextHandler(l, nil)) }

// link carries bytes to a server, until it is cut.
type link struct {
	listener net.Listener

	mu    sync.Mutex
	to    string // empty: it is cut
	open  map[net.Conn]bool
	tries int // connections while it was cut
}

func newLink(t *testing.T) *link {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &link{listener: listener, open: map[net.Conn]bool{}}
	go c.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
	})
	return c
}

func (c *link) address() string { return c.listener.Addr().String() }

func (c *link) serve() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		go c.carry(conn)
	}
}

func (c *link) carry(conn net.Conn) {
	defer conn.Close()
	c.mu.Lock()
	to := c.to
	if to == "" {
		c.tries++
	}
	c.mu.Unlock()
	if to == "" {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	c.mu.Lock()
	if c.to != to {
		c.mu.Unlock()
		return
	}
	c.open[conn], c.open[server] = true, true
	c.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	_, _ = io.Copy(conn, server)
	c.mu.Lock()
	delete(c.open, conn)
	delete(c.open, server)
	c.mu.Unlock()
}

func (c *link) plug(to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to, c.tries = to, 0
}

// cut ends all connections and lets none through.
func (c *link) cut() (to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, c.to, c.tries = c.to, "", 0
	for conn := range c.open {
		_ = conn.Close()
	}
	c.open = map[net.Conn]bool{}
	return to
}

func (c *link) tried() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries
}

var eventually = servertest.Eventually

func space() string { return workv1alpha2.ExecutionNamespace(site1) }

// work is a Work with one ConfigMap.
func work(name, value string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space(), Name: name, Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	w.Spec = contentOf(name, value)
	return w
}

func contentOf(name, value string) workv1alpha1.WorkSpec {
	raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","labels":{"karmada.io/managed":"true"},`+
		`"annotations":{"work.karmada.io/name":%q,"work.karmada.io/namespace":%q}},"data":{"value":%q}}`, name, name, space(), value)
	return workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}}
}

// stands waits until a ConfigMap of the member has a value; empty: until it is gone.
func (s *stage) stands(t *testing.T, name, value string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %q in the member", name, value), func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		err := s.edge.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, cm)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case cm.Data["value"] != value:
			return fmt.Errorf("it is %q", cm.Data["value"])
		}
		return nil
	})
}

// tamper changes a ConfigMap of the member behind everybody's back.
func (s *stage) tamper(t *testing.T, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := s.edge.Patch(t.Context(), cm, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"tampered"}}`))); err != nil {
		t.Fatal(err)
	}
}

// set changes a Work on the hub.
func (s *stage) set(t *testing.T, name, value string) {
	t.Helper()
	w := &workv1alpha1.Work{}
	eventually(t, "the work is changed", func(ctx context.Context) error {
		if err := s.env.Hub.Get(ctx, client.ObjectKey{Namespace: space(), Name: name}, w); err != nil {
			return err
		}
		w.Spec = contentOf(name, value)
		return s.env.Hub.Update(ctx, w)
	})
}

// sign makes a certificate of an agent by the hub's authority.
func (s *stage) sign(t *testing.T, name string, from, to time.Time) registration.Credentials {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(filepath.Join(s.dir, "pki", "ca.crt"), filepath.Join(s.dir, "pki", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(to.UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{identity.AgentsGroup}},
		NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return registration.Credentials{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: private}
}
