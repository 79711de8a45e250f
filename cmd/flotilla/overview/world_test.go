package overview

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/controlplane/fleettest"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

var compare = commandtest.Golden("testdata")

// hubs lends the tests of this package control planes.
var hubs servertest.Pool

func TestMain(m *testing.M) { os.Exit(hubs.Main(m)) }

// world is a control plane with all its loops, one member, east, and a repository.
type world struct {
	env   *servertest.Env
	east  client.Client
	git   *gitserver.Server
	clone string
	cache string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{env: hubs.Env(t), cache: t.TempDir()}
}

// start runs the loops, joins the member and makes the repository.
func (w *world) start(t *testing.T) {
	t.Helper()
	store := serveArtifacts(t)
	w.east = fleettest.Start(t, w.env, member.Options{Name: "east", Nodes: 1}, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{
			Artifacts: store,
			Revisions: reconciler.Revisions{Tenancy: tenancy.Rules{PrivilegedNamespaces: []string{"default"}}},
			Network:   reconciler.Network{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
		})
	}).Edge
	root := t.TempDir()
	var err error
	if w.git, err = gitserver.Start(t.Context(), root, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.git.Close() })
	if err := w.git.Create(t.Context(), "fleet"); err != nil {
		t.Fatal(err)
	}
	w.clone = filepath.Join(root, "clone")
	if _, err := gitserver.Git(t.Context(), root, "clone", "--quiet", w.git.URL("fleet"), w.clone); err != nil {
		t.Fatal(err)
	}
}

// serveArtifacts serves what sources fetch, until the test ends.
func serveArtifacts(t *testing.T) *artifact.Store {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	store, err := artifact.NewStore(t.TempDir(), artifact.Options{BaseURL: "http://" + server.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = store.Handler()
	server.Start()
	t.Cleanup(func() {
		server.Close()
		_ = store.Close()
	})
	return store
}

// commit pushes files to the repository.
func (w *world) commit(t *testing.T, message string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(w.clone, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out string
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "-m", message}, {"push", "--quiet", "origin", "HEAD:main"}, {"rev-parse", "HEAD"}} {
		var err error
		if out, err = gitserver.Git(t.Context(), w.clone, args...); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// call runs a command of this package against the control plane.
func (w *world) call(ctx context.Context, line string) commandtest.Result {
	root := commandtest.Root(func(f *fleet.Flags) []*cobra.Command { return commands(f, clocktesting.NewFakeClock(time.Now())) })
	return commandtest.Run(ctx, root, "", append(strings.Fields(line), "--kubeconfig", w.env.Kubeconfig, "--cache-dir", w.cache)...)
}

// golden compares what was printed with a file, but for what differs each time.
func golden(t *testing.T, name string, got string) {
	t.Helper()
	compare(t, name, commandtest.Steady(got, commandtest.UIDs, commandtest.Commits, commandtest.Times, commandtest.Ports, commandtest.Ages,
		commandtest.Versions, commandtest.Created, commandtest.Pods("web"), commandtest.Columns))
}

// until calls again until what is printed holds what it should.
func (w *world) until(t *testing.T, line, holds string) commandtest.Result {
	t.Helper()
	var last commandtest.Result
	servertest.Eventually(t, line, func(ctx context.Context) error {
		if last = w.call(ctx, line); !strings.Contains(last.Out, holds) {
			return fmt.Errorf("%q is not printed: %s", holds, last)
		}
		return nil
	})
	return last
}
