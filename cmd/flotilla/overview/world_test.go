package overview

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

var update = flag.Bool("update", false, "rewrite golden files")

// patience is how long a test waits for what takes milliseconds.
const patience = time.Minute

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
	log.SetLogger(logr.Discard())
	return &world{env: servertest.New(t), cache: t.TempDir()}
}

// start runs the loops, joins the member and makes the repository.
func (w *world) start(t *testing.T) {
	t.Helper()
	m := membertest.Start(t, member.Options{Name: "east", Nodes: 1})
	var err error
	if w.east, err = client.New(m.Config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	w.startLoops(t)
	if err := join.Join(t.Context(), join.Options{Name: "east", Hub: w.env.Hub, Member: w.east, MemberConfig: m.Config}); err != nil {
		t.Fatal(err)
	}
	if err := join.Ready(t.Context(), w.env.Hub, "east", patience); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
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

func (w *world) startLoops(t *testing.T) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	store, err := artifact.NewStore(t.TempDir(), artifact.Options{BaseURL: "http://" + server.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = store.Handler()
	server.Start()
	mgr, err := hub.NewManager(w.env.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	if err := reconciler.Register(ctx, mgr, reconciler.Options{Artifacts: store}); err != nil {
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
		server.Close()
		_ = store.Close()
	})
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

// said is what a call printed.
type said struct {
	code     int
	out, err string
}

func (s said) String() string {
	return fmt.Sprintf("%s--- stderr\n%s--- exit code %d\n", s.out, s.err, s.code)
}

// call runs a command of this package against the control plane.
func (w *world) call(ctx context.Context, t *testing.T, line string) said {
	t.Helper()
	root := &cobra.Command{Use: "flotilla"}
	f := &fleet.Flags{}
	f.AddTo(root.PersistentFlags())
	f.AddConnectionTo(root.PersistentFlags())
	now := clocktesting.NewFakeClock(time.Now())
	root.AddCommand(commands(f, now)...)
	root.SetArgs(append(strings.Fields(line), "--kubeconfig", w.env.Kubeconfig, "--cache-dir", w.cache))
	var out, errOut bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errOut)
	code := command.Run(ctx, root)
	return said{code, out.String(), errOut.String()}
}

// changing is what differs from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`[0-9a-f]{40}`), "COMMIT"},
	{regexp.MustCompile(`sha1:[0-9a-f]{8}`), "sha1:SHORT"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`\b\d+m?s( ago)?`), "AGE$1"},
	{regexp.MustCompile(`web-[0-9a-f]{8,10}(-[0-9a-z]{5})?\b`), "web-HASH"},
	{regexp.MustCompile(`v1\.\d+\.\d+`), "VERSION"},
	{regexp.MustCompile(`([\w:.)/-]) {2,}`), "$1  "}, // columns are as wide as what is in them
}

// golden compares what was printed with a file, but for what differs each time.
func golden(t *testing.T, name string, got string) {
	t.Helper()
	for _, d := range changing {
		got = d.pattern.ReplaceAllString(got, d.instead)
	}
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
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// until calls again until what is printed holds what it should.
func (w *world) until(t *testing.T, line, holds string) said {
	t.Helper()
	var last said
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = w.call(ctx, t, line)
		return strings.Contains(last.out, holds), nil
	})
	if err != nil {
		t.Fatalf("%s never prints %q: %s", line, holds, last)
	}
	return last
}
