package change_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-io/flotilla/cmd/flotilla/change"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/controlplane/fleettest"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/reconciler"
)

var golden = commandtest.Golden("testdata")

// world is a control plane with its loops and one member, east.
type world struct{ *fleettest.Fleet }

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	return &world{fleettest.Start(t, servertest.New(t), member.Options{Name: "east", Nodes: 1}, loops)}
}

func loops(ctx context.Context, mgr ctrl.Manager) error {
	return reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{
		"template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster",
	}})
}

// result is the output of a call of the command line, and its exit code.
type result = commandtest.Result

// call runs the command line against the hub.
func (w *world) call(t *testing.T, in string, args ...string) result {
	t.Helper()
	return call(t, in, append(args, "--kubeconfig", w.Hub.Kubeconfig)...)
}

// direct runs promote with the member's own kubeconfig.
func (w *world) direct(t *testing.T, args ...string) result {
	t.Helper()
	return w.call(t, "", append(append([]string{"promote"}, args...), "-C", "east", "--cluster-kubeconfig", w.Member.Kubeconfig)...)
}

func call(t *testing.T, in string, args ...string) result {
	t.Helper()
	if i := slices.Index(args, "-"); i > 0 && args[i-1] == "-f" { // kubectl reads the standard input of the process
		args[i] = filepath.Join(t.TempDir(), "in.yaml")
		if err := os.WriteFile(args[i], []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return commandtest.Run(t.Context(), commandtest.Root(change.Commands), in, append(args, "--cache-dir", t.TempDir())...)
}
