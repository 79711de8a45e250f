package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/examples"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// members are the clusters of the example fleet, as its policies name them.
var members = []string{"east", "west", "edge"}

// timeout is how long the example may take before the demo gives up.
const timeout = 3 * time.Minute

// Options describe one run.
type Options struct {
	// Flotillad is the path of the program that runs everything.
	Flotillad string
	// Dir is the folder for all that the demo writes. The demo removes it at the end if it
	// created it.
	Dir string
	// Exit ends the demo when everything is ready, instead of waiting for Ctrl-C.
	Exit bool
	// Out is where the demo prints.
	Out io.Writer
	// Terminal is true if Out is a terminal that can redraw.
	Terminal bool
	// Clock measures how long things take.
	Clock clock.WithTicker
	// Join adds a member to the fleet, as `flotilla join` does.
	Join func(ctx context.Context, hubKubeconfig, name, memberKubeconfig string) error
}

// Run runs the demo. It returns when it is interrupted, when everything is ready and Exit is
// set, or when something fails. Everything that it started has ended by then.
func Run(ctx context.Context, opts Options) (err error) {
	d := &demonstration{Options: opts, begin: opts.Clock.Now()}
	if _, statErr := os.Stat(d.tree()); statErr == nil {
		return fmt.Errorf("a demo is in the folder %s already: end the one that runs there, and remove the folder; or name another by --dir", opts.Dir)
	}
	if _, statErr := os.Stat(opts.Dir); errors.Is(statErr, fs.ErrNotExist) {
		defer func() { err = errors.Join(err, os.RemoveAll(opts.Dir)) }()
	}
	d.printf("Flotilla, on this machine: a control plane, three clusters and a Git server start, on free ports, with their data in %s.\n", opts.Dir)
	fleet, err := localfleet.Start(ctx, localfleet.Options{
		Flotillad: opts.Flotillad, Dir: opts.Dir, Members: members, Progress: d.started,
		HubArgs: []string{localfleet.LoopbackSources},
	})
	if err != nil {
		return err
	}
	defer func() {
		if !opts.Exit {
			d.printf("\nStopping everything …")
		}
		err = errors.Join(err, fleet.Stop())
	}()
	if err := d.show(ctx, fleet); err != nil {
		return err
	}
	if opts.Exit {
		return nil
	}
	<-ctx.Done()
	return nil
}

// demonstration is one run of the demo.
type demonstration struct {
	Options
	begin time.Time
}

// tree returns the folder with the working tree of the repository.
func (d *demonstration) tree() string { return filepath.Join(d.Dir, "fleet") }

func (d *demonstration) show(ctx context.Context, fleet *localfleet.Fleet) error {
	for _, name := range members {
		if err := d.Join(ctx, fleet.Hub.Kubeconfig, name, fleet.Members[name].Kubeconfig); err != nil {
			return fmt.Errorf("join %s: %w", name, err)
		}
		d.printf("  ✔ joined %s", name)
	}
	tree := d.tree()
	commit, err := d.commit(ctx, fleet.Git, tree)
	if err != nil {
		return err
	}
	hub, err := d.follow(ctx, fleet)
	if err != nil {
		return err
	}
	d.printf("  ✔ committed the example to %s\n", fleet.Git.URL("fleet"))
	on := target{
		namespace: "flux-system", source: "fleet", apply: "web", appNamespace: "shop",
		clusters: members, commit: commit,
	}
	if err := d.watch(ctx, hub, on); err != nil {
		return err
	}
	return d.finish(ctx, fleet, tree, commit)
}

// commit puts the example application into a new repository.
func (d *demonstration) commit(ctx context.Context, server *gitserver.Server, tree string) (string, error) {
	if err := server.Create(ctx, "fleet"); err != nil {
		return "", err
	}
	app, err := fs.Sub(examples.Files, "web/app")
	if err != nil {
		return "", fmt.Errorf("find the example: %w", err)
	}
	if err := os.CopyFS(filepath.Join(tree, "app"), app); err != nil {
		return "", fmt.Errorf("write the example: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"config", "user.name", "Flotilla Demo"},
		{"config", "user.email", "demo@localhost"},
		{"config", "notes.displayRef", "refs/notes/flotilla"},
		{"remote", "add", "origin", server.URL("fleet")},
		{"config", "--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/*"},
		{"add", "."},
		{"commit", "--quiet", "-m", "Run the web application on three clusters"},
		{"push", "--quiet", "--set-upstream", "origin", "main"},
	} {
		if _, err := gitserver.Git(ctx, tree, args...); err != nil {
			return "", err
		}
	}
	return gitserver.Git(ctx, tree, "rev-parse", "HEAD")
}

// follow makes the control plane follow the repository.
func (d *demonstration) follow(ctx context.Context, fleet *localfleet.Fleet) (client.Client, error) {
	cfg, err := fleet.Hub.Config()
	if err != nil {
		return nil, err
	}
	hub, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	manifests, err := examples.Files.ReadFile("web/fleet/fleet.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the example: %w", err)
	}
	content := strings.ReplaceAll(string(manifests), "http://127.0.0.1:3000/fleet.git", fleet.Git.URL("fleet"))
	path := filepath.Join(d.Dir, "fleet.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("write the example: %w", err)
	}
	return hub, createAll(ctx, hub, content)
}

// watch shows the view until it is finished.
func (d *demonstration) watch(ctx context.Context, hub client.Reader, on target) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("it took too long"))
	defer cancel()
	ticker := d.Clock.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	screen := screen{out: d.Out, terminal: d.Terminal}
	for {
		view, err := observe(ctx, hub, on)
		if err != nil && ctx.Err() == nil {
			return err
		}
		screen.draw(view, d.Clock.Since(d.begin))
		if view.Finished() {
			return nil
		}
		select {
		case <-ctx.Done():
			failure, _ := view.Failure()
			return fmt.Errorf("not ready: %w %s", context.Cause(ctx), failure)
		case <-ticker.C():
		}
	}
}

// finish prints the outcome on the commit, and what to try next.
func (d *demonstration) finish(ctx context.Context, fleet *localfleet.Fleet, tree, commit string) error {
	if _, err := gitserver.Git(ctx, tree, "fetch", "--quiet", "origin"); err != nil {
		return err
	}
	log, err := gitserver.Git(ctx, tree, "log", "-1", "--format=commit %h  %s%n%N", "--notes=flotilla", commit)
	if err != nil {
		return err
	}
	d.printf("\nThe commit carries the outcome, for everybody who reads the repository:\n")
	for line := range strings.SplitSeq(strings.TrimSpace(log), "\n") {
		d.printf("    %s", line)
	}
	d.printf("\nFrom nothing to running on three clusters in %s.", d.Clock.Since(d.begin).Round(100*time.Millisecond))
	if !d.Exit {
		d.hints(fleet, tree)
	}
	return nil
}

func (d *demonstration) hints(fleet *localfleet.Fleet, tree string) {
	program := filepath.Join(filepath.Dir(d.Flotillad), "flotilla")
	d.printf(`
Everything keeps running. In another terminal, try:

  export KUBECONFIG=%[1]s
  alias flotilla=%[2]s kubectl="%[2]s kubectl"

  look around        flotilla status
                     flotilla explain deployment/web -n shop
                     kubectl get clusters
                     kubectl get deployments,rb,works -A
                     kubectl --kubeconfig %[3]s get pods -n shop

  change something   cd %[4]s
                     sed -i 's/replicas: 4/replicas: 8/' app/web.yaml
                     git commit -am 'More replicas' && git push
                     git fetch && git log    # the commits, each with what became of it

  break a cluster    kill -STOP %[5]d    # west hangs; about 40 s later: flotilla status
                     kill -CONT %[5]d    # and is back, after 10 s to 40 s

Ctrl-C stops everything and removes %[6]s.`,
		fleet.Hub.Kubeconfig, program, fleet.Members["east"].Kubeconfig, tree, fleet.Members["west"].PID(), d.Dir)
}

func (d *demonstration) started(part string, took time.Duration) {
	d.printf("  ✔ %-14s ready after %.1fs", part, took.Seconds())
}

func (d *demonstration) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.Out, format+"\n", args...)
}
