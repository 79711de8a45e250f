package inspection_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/inspection"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/reconciler"
)

var update = flag.Bool("update", false, "rewrite golden files")

// timeout is how long a test waits for what takes milliseconds.
const timeout = time.Minute

// world is a control plane with the loops that let people through, and three
// clusters: east, west, which is the same member under another name, and north,
// which is away.
type world struct {
	hub    *servertest.Env
	member *membertest.Member
	own    client.Client // of the member
	dir    string        // of the member
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log.SetLogger(logr.Discard())
	w := &world{hub: servertest.New(t), dir: t.TempDir()}
	w.member = membertest.Start(t, member.Options{Name: "east", Nodes: 1, DataDir: w.dir})
	var err error
	if w.own, err = client.New(w.member.Config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	w.startLoops(t)
	if err := join.Join(t.Context(), join.Options{Name: "east", Hub: w.hub.Hub, Member: w.own, MemberConfig: w.member.Config}); err != nil {
		t.Fatal(err)
	}
	if err := join.Ready(t.Context(), w.hub.Hub, "east", timeout); err != nil {
		t.Fatal(err)
	}
	w.register(t, "west", w.member.Server, "")
	w.register(t, "north", "https://"+nobody(t), "north")
	return w
}

func (w *world) startLoops(t *testing.T) {
	t.Helper()
	mgr, err := hub.NewManager(w.hub.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	if err := reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{"execution", "cluster", "unifiedauth"}}); err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("loops: %v", err)
		}
	})
}

// register makes a cluster that is reached with the credentials of east. Its id is not
// that of east: one id is one cluster.
func (w *world) register(t *testing.T, name, endpoint, id string) {
	t.Helper()
	east := &clusterv1alpha1.Cluster{}
	if err := w.hub.Hub.Get(t.Context(), client.ObjectKey{Name: "east"}, east); err != nil {
		t.Fatal(err)
	}
	spec := east.Spec.DeepCopy()
	spec.APIEndpoint, spec.Taints, spec.ID = endpoint, nil, id
	w.create(t, w.hub.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec})
}

func (w *world) create(t *testing.T, in client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := in.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// nobody is an address without a listener.
func nobody(t *testing.T) string {
	t.Helper()
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	return closed.Addr().String()
}

// result is the output of a call of the command line, and its exit code.
type result struct {
	code     int
	out, err string
}

func (s result) String() string {
	return fmt.Sprintf("%s--- stderr\n%s--- exit code %d\n", s.out, s.err, s.code)
}

// call runs the command line against the hub.
func (w *world) call(ctx context.Context, t *testing.T, in string, args ...string) result {
	t.Helper()
	return call(ctx, t, in, append([]string{"--kubeconfig", w.hub.Kubeconfig}, args...)...)
}

func call(ctx context.Context, t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errOut buffer
	code := command.Run(ctx, root(t, in, &out, &errOut, args...))
	return result{code, out.String(), errOut.String()}
}

func root(t *testing.T, in string, out, errOut *buffer, args ...string) *cobra.Command {
	t.Helper()
	root := &cobra.Command{Use: "flotilla"}
	f := &fleet.Flags{}
	f.AddTo(root.PersistentFlags())
	f.AddConnectionTo(root.PersistentFlags())
	f.Complete(root)
	root.AddCommand(inspection.Commands(f)...)
	root.SetArgs(append([]string{"--cache-dir", scratch(t)}, args...))
	if args[0] == cobra.ShellCompRequestCmd {
		root.SetArgs(args)
	}
	for _, cmd := range append(root.Commands(), root) {
		// cobra writes to flags that the whole process has; not while another
		// call runs.
		cmd.InheritedFlags()
	}
	root.SetIn(strings.NewReader(in))
	root.SetOut(out)
	root.SetErr(errOut)
	return root
}

// scratch is a folder for what calls keep of what servers serve. One that was
// interrupted may write there still when it has ended, which would fail a test with
// a folder of its own.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flotilla-inspection-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// buffer may be read while it is written.
type buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// spaces are as many as columns are wide, and those are as wide as ages.
var spaces = regexp.MustCompile(` {2,}`)

func steady(text string) string {
	return commandtest.Ports(spaces.ReplaceAllString(text, "   "))
}

// golden compares what was printed with a file.
func golden(t *testing.T, name string, got result) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	text := got.String()
	if !strings.HasPrefix(name, "top-") { // there 250m is not an age
		text = commandtest.Ages(text)
	}
	text = steady(text)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// eventually waits until check holds, and reports what was wrong last.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// furnish puts what the tests look at into the member.
func (w *world) furnish(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	w.create(t, w.own,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "empty"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "texts", Labels: map[string]string{"karmada.io/managed": "true"}}, Data: map[string]string{"hello": "world"}},
	)
	w.create(t, w.hub.Hub,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "texts"}},
	)
	for _, name := range []string{"web-1", "web-2"} {
		eventually(t, "make a pod", func(ctx context.Context) error { // once its service account is there
			err := w.own.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels},
				Spec:       corev1.PodSpec{NodeName: "east-node-1", Containers: []corev1.Container{{Name: "main", Image: "example.org/web", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
			})
			return client.IgnoreAlreadyExists(err)
		})
		eventually(t, "start a pod", func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := w.own.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, pod); err != nil || pod.Status.Phase == corev1.PodRunning {
				return err
			}
			return fmt.Errorf("it is %s", pod.Status.Phase)
		})
	}
}
