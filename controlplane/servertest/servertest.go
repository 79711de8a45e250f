package servertest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/crds"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane"
)

const (
	startTimeout = 3 * time.Minute
	pollEvery    = 20 * time.Millisecond
	// A store counts as quiet once so many looks at it, so far apart, saw no write.
	// Looks and not time: on a machine that stood still meanwhile, the loops have
	// not run either.
	quietPolls = 10
	quietPause = 50 * time.Millisecond
	// quietTimeout is how long QuietRevision waits for that.
	quietTimeout = 3 * time.Minute
)

// Env is a running control plane.
type Env struct {
	// Config is for clients of any kind: it may do everything and is not
	// throttled.
	Config *rest.Config
	// Hub is a client of every kind that Flotilla knows, without a cache.
	Hub client.Client
	// Kubeconfig is the administrator's kubeconfig file.
	Kubeconfig string

	plane *controlplane.ControlPlane
	dir   string
	stop  context.CancelFunc
	done  chan error
}

// Start runs a control plane in a temporary folder. Stop ends it.
func Start(ctx context.Context) (*Env, error) {
	dir, err := os.MkdirTemp("", "flotilla-")
	if err != nil {
		return nil, err
	}
	env, err := StartIn(ctx, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	env.dir = dir
	return env, nil
}

// StartIn runs a control plane in a folder that stays when it ends.
func StartIn(ctx context.Context, dir string) (*Env, error) {
	return StartBy(ctx, dir, controlplane.Rules{})
}

// StartBy does so by rules.
func StartBy(ctx context.Context, dir string, rules controlplane.Rules) (*Env, error) {
	Silence()
	definitions, err := crds.All()
	if err != nil {
		return nil, err
	}
	plane, err := controlplane.New(ctx, controlplane.Options{DataDir: dir, SecurePort: lastPort(dir), Definitions: definitions, Rules: rules, UnsafeNoFsync: true})
	if err != nil {
		return nil, err
	}
	e := &Env{plane: plane, Config: plane.Config(), Kubeconfig: plane.KubeconfigFile(), done: make(chan error, 1)}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	go func() { e.done <- plane.Run(running) }()
	if err := e.wait(ctx); err != nil {
		return nil, err
	}
	if e.Hub, err = client.New(e.Config, client.Options{Scheme: scheme.New()}); err != nil {
		e.stop()
		return nil, fmt.Errorf("client: %w", err)
	}
	if err := awaitHousekeeping(ctx, e.Hub); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

// lastPort is the port of the last run in a folder, where it had one: the control
// plane publishes its address to clusters, and a restart on the same writes nothing.
func lastPort(dir string) int {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		return 0
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return 0
	}
	return port
}

func (e *Env) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-e.plane.Ready():
		return nil
	case err := <-e.done:
		e.stop()
		return fmt.Errorf("control plane ended: %w", err)
	case <-ctx.Done():
		e.stop()
		return fmt.Errorf("control plane is not ready: %w", ctx.Err())
	}
}

// Stop ends the control plane and waits until it has.
func (e *Env) Stop() error {
	e.stop()
	err := <-e.done
	if e.dir != "" {
		os.RemoveAll(e.dir)
	}
	return err
}

// Folder is where the control plane keeps its data, if Start has made it.
func (e *Env) Folder() string { return e.dir }

// New runs a control plane for one test.
func New(t testing.TB) *Env {
	t.Helper()
	e, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("control plane: %v", err)
		}
	})
	return e
}

// Namespace makes a namespace for one test, named after it, and removes it in
// the end. Housekeeping has furnished it: a test that counts writes counts its
// own.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix(t.Name())}}
	if err := e.Hub.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startTimeout)
		defer cancel()
		if err := e.Hub.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
			t.Errorf("remove namespace %s: %v", ns.Name, err)
		}
	})
	if err := furnished(t.Context(), e.Hub, ns.Name); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// prefix makes the start of a name for a namespace out of a test's name.
func prefix(test string) string {
	const most = 40
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, test)
	name = strings.Trim(name[:min(len(name), most)], "-")
	return "t-" + name + "-"
}

// Shared returns an object that was read made of what the server has in memory of
// it; see aggregated.Kinds.
func (e *Env) Shared(t testing.TB, obj runtime.Object) runtime.Object {
	t.Helper()
	return e.plane.Kinds().Shared(t.Context(), obj)
}

// Watch watches a kind without a request to the server; see aggregated.Kinds.
func (e *Env) Watch(ctx context.Context, of runtime.Object, options metav1.ListOptions) (watch.Interface, error) {
	return e.plane.Kinds().Watch(ctx, of, options)
}

// Revision is the number of the last write to the server's store.
func (e *Env) Revision(t testing.TB) int64 {
	t.Helper()
	revision, err := e.plane.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// Written lists the keys of the server's store that were written after a
// revision and still exist.
func (e *Env) Written(t testing.TB, after int64) []string {
	t.Helper()
	keys, err := e.plane.Written(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Emptied waits until what earlier tests have left in their namespaces is gone, or
// somebody holds it: that takes seconds, and a test that compares revisions would count
// it.
func (e *Env) Emptied(t testing.TB) {
	t.Helper()
	if err := emptied(t.Context(), e.Hub); err != nil {
		t.Fatal(err)
	}
}

// QuietRevision is the number of the last write once there has been none for a
// while. On a server of several tests, Emptied comes first.
func (e *Env) QuietRevision(t testing.TB) int64 {
	t.Helper()
	deadline := time.After(quietTimeout)
	last, polls := e.Revision(t), 0
	for polls < quietPolls {
		pause := time.NewTimer(quietPause) // after each look: a ticker would catch up
		select {
		case <-pause.C:
		case <-deadline:
			t.Fatal("the store is written to all the time")
		}
		now := e.Revision(t)
		if polls++; now != last {
			last, polls = now, 0
		}
	}
	return last
}

// Shared is one control plane for all tests of a package. It starts with the
// first test that asks and ends with Main:
//
//	var shared servertest.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
type Shared struct {
	once sync.Once
	env  *Env
	err  error
}

// Main runs the tests, ends the control plane, and returns the exit code.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.env == nil {
		return code
	}
	if err := s.env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return max(code, 1)
	}
	return code
}

// Env returns the control plane, which runs from the first call on.
func (s *Shared) Env(t testing.TB) *Env {
	t.Helper()
	s.once.Do(func() { s.env, s.err = Start(context.WithoutCancel(t.Context())) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.env
}

// Silence keeps what Kubernetes' components log out of the tests'
// output, unless the tests are verbose.
func Silence() {
	if f := flag.Lookup("test.v"); f != nil && f.Value.String() == "true" {
		return
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err) // a flag of klog's that is gone
		}
	}
	klog.SetOutput(io.Discard)
}
