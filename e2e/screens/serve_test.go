package screens

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
	"github.com/flotilla-io/flotilla/internal/pty"
)

var golden = commandtest.Golden("testdata")

// shown is what a program has shown up to now.
type shown struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// program is one that somebody looks at.
type program struct {
	*shown
	keys  *os.File
	ended chan error
}

// onTerminal starts a program on a terminal of its own, and kills it after the test.
func onTerminal(t *testing.T, name string, args ...string) *program {
	t.Helper()
	terminal, err := pty.Open(160, 50)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), fleet.Program(name), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal.Program, terminal.Program, terminal.Program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{shown: &shown{}, keys: terminal.Screen, ended: make(chan error, 1)}
	_ = terminal.Program.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = terminal.Screen.WriteTo(p.shown)
	}()
	go func() {
		err := cmd.Wait()
		<-read
		p.ended <- err
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = terminal.Screen.Close()
		if t.Failed() {
			t.Logf("the screen:\n%s", p)
		}
	})
	return p
}

// until waits until the screen has a text.
func (p *program) until(t *testing.T, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the screen has %q", text), func(context.Context) error {
		if out := p.String(); !strings.Contains(out, text) {
			return fmt.Errorf("it has:\n%s", out)
		}
		return nil
	})
}

func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	if err := fleet.Until(t.Context(), 100*time.Millisecond, fleet.Slack*time.Minute, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// steady is a screen without what differs from run to run.
func steady(text, dir string) string {
	text = strings.ReplaceAll(text, dir, "DIR")
	text = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  `).ReplaceAllString(text, "CLOCK  ")
	text = regexp.MustCompile(`after \d+\.\ds`).ReplaceAllString(text, "after SECONDS")
	return commandtest.Steady(text, commandtest.Ports)
}

// kind is one that the control plane is taught, with an object and a policy that carries it.
const kind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example}
spec:
  group: harbour.example
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat, listKind: BoatList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

const boat = `apiVersion: harbour.example/v1
kind: Boat
metadata: {name: one, namespace: default}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: boats, namespace: default}
spec:
  resourceSelectors: [{apiVersion: harbour.example/v1, kind: Boat}]
  placement: {clusterAffinity: {clusterNames: [east]}}
`

// TestServe: whoever starts a control plane on a terminal is told that it is ready and what comes
// next, then only what matters, and ends it by Ctrl-C. A second start there tells no newcomer's
// steps; one without a terminal logs as ever.
func TestServe(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane and a member")
	}
	dir := fleet.Folder(t)
	hub := filepath.Join(dir, "hub")
	kubeconfig := filepath.Join(hub, "admin.kubeconfig")
	serve := []string{"serve", "--data-dir", hub, "--secure-port", "0"}

	first := onTerminal(t, "flotillad", serve...)
	first.until(t, "Ctrl-C stops.")
	member, err := localfleet.NewMember(localfleet.Options{Flotillad: fleet.Program("flotillad"), Dir: dir, Nodes: 1}, "east")
	if err != nil {
		t.Fatal(err)
	}
	start(t, member)
	run(t, "", "flotilla", "join", "east", "--kubeconfig", kubeconfig, "--cluster-kubeconfig", member.Kubeconfig, "--cluster-context", "east")
	first.until(t, "reason=ClusterReady")
	letGo(t, kubeconfig, member.Kubeconfig, filepath.Join(hub, "flotillad.log"))
	stop(t, first)
	golden(t, "serve.txt", steady(first.String(), hub))

	serve[len(serve)-1] = listening.FindStringSubmatch(first.String())[1] // where it was
	second := onTerminal(t, "flotillad", serve...)
	second.until(t, "Ctrl-C stops.")
	stop(t, second)
	golden(t, "serve-again.txt", steady(second.String(), hub)) // parts that are stopped while they start say nothing here
	withoutTerminal(t, hub, serve)
}

// listening finds the port in what a control plane says that is ready.
var listening = regexp.MustCompile(`https://127\.0\.0\.1:(\d+)`)

// letGo teaches the control plane and the member a kind, has it carry an object, and takes the kind
// away from both: the log reports it for a while, and not for ever.
func letGo(t *testing.T, kubeconfig, member, log string) {
	t.Helper()
	on := func(kubeconfig string, args ...string) []string {
		return append([]string{"kubectl", "--kubeconfig", kubeconfig}, args...)
	}
	for _, at := range []string{member, kubeconfig} {
		run(t, kind, "flotilla", on(at, "apply", "-f", "-")...)
		eventually(t, "the kind is served", func(ctx context.Context) error { // kubectl errs where no condition is there yet
			_, err := fleet.Run(ctx, nil, "flotilla", on(at, "wait", "--for", "condition=Established", "crd/boats.harbour.example", "--timeout", "60s")...)
			return err
		})
	}
	run(t, boat, "flotilla", on(kubeconfig, "apply", "-f", "-")...)
	eventually(t, "the kind is watched on both sides", func(ctx context.Context) error {
		_, err := fleet.Run(ctx, nil, "flotilla", on(member, "get", "boats", "one", "-n", "default")...)
		return err
	})
	for _, at := range []string{kubeconfig, member} {
		run(t, "", "flotilla", on(at, "delete", "crd", "boats.harbour.example", "--timeout", "120s")...)
	}
	const quiet = 15 * time.Second // a watch that is tried again and again is so within seconds
	lines, since := -1, time.Now()
	eventually(t, fmt.Sprintf("the log is silent about the kind for %s", quiet), func(context.Context) error {
		about := linesAbout(t, log, "harbour.example")
		if len(about) != lines {
			lines, since = len(about), time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("%d lines, the last of them: %q", lines, about[max(0, lines-3):])
		}
		return nil
	})
}

// linesAbout are the lines of a file that have a word.
func linesAbout(t *testing.T, file, word string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, word) {
			out = append(out, line)
		}
	}
	return out
}

// stop presses Ctrl-C, and waits until the program has ended well.
func stop(t *testing.T, p *program) {
	t.Helper()
	if _, err := p.keys.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	timer := time.NewTimer(fleet.Slack * time.Minute)
	defer timer.Stop()
	select {
	case err := <-p.ended:
		if err != nil && err.Error() != "exit status 130" {
			t.Errorf("it ended with %v", err)
		}
	case <-timer.C:
		t.Fatal("Ctrl-C does not end it")
	}
}

// logLine is one as programs read them, or one of the store's client, which has a log of its own.
var logLine = regexp.MustCompile(`^time=\S+ level=(DEBUG|INFO|WARN|ERROR)\S* msg=|^\{"level":.*"logger":"etcd-client"`)

// withoutTerminal starts a control plane that nobody looks at.
func withoutTerminal(t *testing.T, hub string, args []string) {
	t.Helper()
	log := filepath.Join(hub, "flotillad.log")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut shown
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), fleet.Program("flotillad"), args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	eventually(t, "it is ready", func(context.Context) error {
		if !strings.Contains(out.String(), " is ready after ") {
			return fmt.Errorf("it says %q and logs:\n%s", out.String(), errOut.String())
		}
		return nil
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // by the signal
	golden(t, "serve-piped.txt", steady(out.String(), hub))
	if errOut.String() == "" {
		t.Error("nothing is logged to standard error")
	}
	for line := range strings.Lines(errOut.String()) {
		if !logLine.MatchString(line) {
			t.Errorf("it logs %q", line)
		}
	}
	after, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the log of who looks has changed (-before +after):\n%s", diff)
	}
}

// start starts a process, waits until it is ready, and stops it after the test.
func start(t *testing.T, p *localfleet.Process) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Slack*time.Minute)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, stdin, name string, args ...string) {
	t.Helper()
	if _, err := fleet.Run(t.Context(), []byte(stdin), name, args...); err != nil {
		t.Fatal(err)
	}
}

// TestServeShowsMoves: whoever looks at a control plane sees what is moved off a cluster, and that one in pull
// mode is back.
func TestServeShowsMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane and three members")
	}
	dir := fleet.Folder(t)
	hub := filepath.Join(dir, "hub")
	kubeconfig := filepath.Join(hub, "admin.kubeconfig")
	p := onTerminal(t, "flotillad", "serve", "--data-dir", hub, "--secure-port", "0", "--failover=on", "--cluster-monitor-grace-period", "5s")
	p.until(t, "Ctrl-C stops.")
	members := map[string]*localfleet.Process{}
	for _, name := range []string{"east", "west", "north"} {
		member, err := localfleet.NewMember(localfleet.Options{Flotillad: fleet.Program("flotillad"), Dir: dir, Nodes: 1}, name)
		if err != nil {
			t.Fatal(err)
		}
		start(t, member)
		members[name] = member
	}
	for _, name := range []string{"east", "west"} {
		run(t, "", "flotilla", "join", name, "--kubeconfig", kubeconfig, "--cluster-kubeconfig", members[name].Kubeconfig)
	}
	run(t, ferries, "flotilla", "kubectl", "--kubeconfig", kubeconfig, "apply", "-f", "-")
	eventually(t, "they run in east", func(ctx context.Context) error {
		_, err := fleet.Run(ctx, nil, "flotilla", "kubectl", "--kubeconfig", members["east"].Kubeconfig, "get", "configmap", "one", "two", "-n", "default")
		return err
	})
	run(t, "", "flotilla", "taint", "clusters", "east", "repair:NoExecute", "--kubeconfig", kubeconfig)
	p.until(t, "failover: 2 templates moved off east to west: untolerated taint {repair:NoExecute}")

	agent, err := (&fleet.Fleet{Dir: dir}).NewAgent(t.Context(), "north", "--karmada-kubeconfig", kubeconfig, "--cluster-name", "north", "--kubeconfig", members["north"].Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	const ready = "Cluster turned ready=True reason=ClusterReady (north)"
	start(t, agent)
	p.until(t, ready)
	if err := agent.Stop(); err != nil {
		t.Fatal(err)
	}
	p.until(t, "Cluster turned ready=Unknown")
	start(t, agent)
	eventually(t, "the screen says that it is back", func(context.Context) error {
		if n := strings.Count(p.String(), ready); n != 2 {
			return fmt.Errorf("it says %d times that it is ready", n)
		}
		return nil
	})
	stop(t, p)
}

// ferries are two objects that one cluster runs, and another one when that fails.
const ferries = `apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: default}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: default}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: ferries, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: one}, {apiVersion: v1, kind: ConfigMap, name: two}]
  placement:
    clusterAffinities:
      - {affinityName: first, clusterNames: [east]}
      - {affinityName: second, clusterNames: [west]}
`
