package change_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/reconciler"
)

var update = flag.Bool("update", false, "rewrite golden files")

// patience is how long a test waits for what takes milliseconds.
const patience = time.Minute

// world is a control plane with its loops and one member, east.
type world struct {
	hub    *servertest.Env
	member *membertest.Member
	east   client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log.SetLogger(logr.Discard())
	t.Setenv("KUBECACHEDIR", t.TempDir())
	w := &world{hub: servertest.New(t)}
	w.member = membertest.Start(t, member.Options{Name: "east", Nodes: 1})
	var err error
	if w.east, err = client.New(w.member.Config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	w.startLoops(t)
	if err := join.Join(t.Context(), join.Options{Name: "east", Hub: w.hub.Hub, Member: w.east, MemberConfig: w.member.Config}); err != nil {
		t.Fatal(err)
	}
	if err := join.Ready(t.Context(), w.hub.Hub, "east", patience); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) startLoops(t *testing.T) {
	t.Helper()
	mgr, err := hub.NewManager(w.hub.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	err = reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{
		"template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster",
	}})
	if err != nil {
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

// said is what a call of the command line printed, and its exit code.
type said struct {
	Code     int
	Out, Err string
}

// call runs the command line against the hub.
func (w *world) call(t *testing.T, in string, args ...string) said {
	t.Helper()
	return call(t, in, append(args, "--kubeconfig", w.hub.Kubeconfig)...)
}

// direct runs promote with the member's own kubeconfig.
func (w *world) direct(t *testing.T, args ...string) said {
	t.Helper()
	return w.call(t, "", append(append([]string{"promote"}, args...), "-C", "east", "--cluster-kubeconfig", w.member.Kubeconfig)...)
}

func call(t *testing.T, in string, args ...string) said {
	t.Helper()
	root := &cobra.Command{Use: "flotilla"}
	f := &fleet.Flags{}
	f.AddTo(root.PersistentFlags())
	f.AddConnectionTo(root.PersistentFlags())
	root.AddCommand(change.Commands(f)...)
	if i := slices.Index(args, "-"); i > 0 && args[i-1] == "-f" { // kubectl reads the standard input of the process
		args[i] = filepath.Join(t.TempDir(), "in.yaml")
		if err := os.WriteFile(args[i], []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root.SetArgs(append(args, "--cache-dir", t.TempDir()))
	var out, errOut bytes.Buffer
	root.SetIn(strings.NewReader(in))
	root.SetOut(&out)
	root.SetErr(&errOut)
	code := command.Run(t.Context(), root)
	return said{code, out.String(), errOut.String()}
}

// golden compares what was printed with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// eventually waits until check holds, and tells what was wrong last.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}
