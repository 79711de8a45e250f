package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/sandbox"
)

// Arguments with which the test binary starts itself: each selects what the child
// process does.
const (
	serves = "serve-a-build"
	hangs  = "hang"
	breaks = "break"
	babble = "babble"
	greedy = "greedy"
	killed = "killed"
	polite = "polite"
)

func TestMain(m *testing.M) {
	if len(os.Args) != 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case serves:
		if err := sandbox.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case hangs:
		fmt.Fprintln(os.Stdout, "")
		select {}
	case breaks:
		fmt.Fprintln(os.Stderr, "panic: it broke")
		os.Exit(2)
	case killed:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case babble:
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 1<<16)); err != nil {
				os.Exit(0)
			}
		}
	case greedy:
		if err := (sandbox.Limits{Memory: 16 << 20}).Keep(); err != nil {
			os.Exit(1)
		}
		var all [][]byte
		for len(all) < 1<<10 {
			all = append(all, make([]byte, 1<<20))
		}
		fmt.Fprintln(os.Stdout, len(all))
	case polite:
		if err := (sandbox.Limits{}).Keep(); err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, policies())
		os.Exit(1)
	default:
		os.Exit(m.Run())
	}
}

// policies returns the scheduling policies of this process's threads, some of
// them new, and its OOM score.
func policies() string {
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() { runtime.LockOSThread() }) // the thread ends with the goroutine
	}
	threads.Wait()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, task := range tasks {
		id, _ := strconv.Atoi(task.Name())
		attributes, err := unix.SchedGetAttr(id, 0)
		if err == nil {
			all = append(all, fmt.Sprintf("policy %d", attributes.Policy))
		}
	}
	slices.Sort(all)
	score, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return err.Error()
	}
	return strings.Join(slices.Compact(all), ", ") + ", ends first by " + strings.TrimSpace(string(score))
}

func runner(limits sandbox.Limits, as string) *sandbox.Runner {
	return sandbox.New(limits, sandbox.Self, as)
}

func configMaps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-%d}\ndata: {number: \"%d\", time: 2026-01-02, on: \"yes\", text: \"a\\nb\"}\n", i, i)
	}
	return b.String()
}

func input(n int) build.Input {
	return build.Input{Files: map[string][]byte{
		"kustomization.yaml": []byte("namePrefix: x-\nopenapi: {path: schema.json}\nresources: [a.yaml]\n"),
		"schema.json":        []byte(`{"definitions": {}}`),
		"a.yaml":             []byte(configMaps(n)),
	}}
}

// TestTheSameAsHere checks that a build in a process returns the same objects as
// one in this process.
func TestTheSameAsHere(t *testing.T) {
	apart, err := build.NewApart(build.Limits{}, runner(sandbox.Limits{}, serves)).Build(t.Context(), input(20))
	if err != nil {
		t.Fatal(err)
	}
	here, err := build.New(build.Limits{}).Build(t.Context(), input(20))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(here, apart); diff != "" {
		t.Errorf("objects (-here +apart):\n%s", diff)
	}
}

// TestABuildThatIsGivenUpEnds checks that nothing of a build is left once its
// context has ended, and that another build does not wait for it. kustomize would
// need minutes for these six thousand objects with their own schema.
func TestABuildThatIsGivenUpEnds(t *testing.T) {
	builder := build.NewApart(build.Limits{}, runner(sandbox.Limits{}, serves))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	first := make(chan error, 1)
	go func() {
		_, err := builder.Build(ctx, input(6000))
		first <- err
	}()
	second, err := builder.Build(t.Context(), input(1))
	if err != nil || len(second) != 1 {
		t.Errorf("the second build: %d objects, %v", len(second), err)
	}
	if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the first build: %v, want %v", err, context.DeadlineExceeded)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// children returns the running child processes of this one.
func children(t *testing.T) []string {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, task := range tasks {
		list, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err == nil {
			out = append(out, strings.Fields(string(list))...)
		}
	}
	return out
}

// TestFaultsAreTheSame checks that a process reports errors in the files as a
// build in this process does.
func TestFaultsAreTheSame(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
	}{
		"a manifest that is none":       {files: map[string]string{"a.yaml": configMaps(600) + "---\nkind: Deployment\n"}},
		"an object that is there twice": {files: map[string]string{"a.yaml": configMaps(600), "b.yaml": configMaps(1)}},
		"a remote base":                 {files: map[string]string{"kustomization.yaml": "resources: [a.yaml, \"https://forge.example/base\"]\n", "a.yaml": configMaps(600)}},
		"too many objects":              {files: map[string]string{"a.yaml": configMaps(10_001)}},
		"a variable that is not known":  {files: map[string]string{"a.yaml": configMaps(600) + "  more: ${missing}\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := build.Input{Files: map[string][]byte{}, Spec: build.Spec{StrictVariables: true, AlwaysSubstitute: true}}
			for name, text := range tc.files {
				in.Files[name] = []byte(text)
			}
			_, here := build.New(build.Limits{}).Build(t.Context(), in)
			_, apart := build.NewApart(build.Limits{}, runner(sandbox.Limits{}, serves)).Build(t.Context(), in)
			if here == nil || apart == nil || here.Error() != apart.Error() {
				t.Fatalf("apart: %v; here: %v", apart, here)
			}
			for _, known := range build.Faults() {
				if errors.Is(here, known) != errors.Is(apart, known) {
					t.Errorf("apart it is %v: %v", known, errors.Is(apart, known))
				}
			}
		})
	}
}

// FuzzAnswer checks that any answer of a process leads to objects within the
// limit or to an error.
func FuzzAnswer(f *testing.F) {
	var asked, answer bytes.Buffer
	if err := sandbox.Send(&asked, build.Job{Input: input(2), Limits: build.Limits{}}); err != nil {
		f.Fatal(err)
	}
	cmd := exec.CommandContext(f.Context(), sandbox.Self, serves)
	cmd.Stdin, cmd.Stdout = &asked, &answer
	if err := cmd.Run(); err != nil {
		f.Fatal(err)
	}
	f.Add(answer.Bytes())
	f.Add(answer.Bytes()[:answer.Len()-3])
	f.Add([]byte("no answer"))
	f.Fuzz(func(t *testing.T, text []byte) {
		const most = 10
		objects, err := sandbox.Receive(&io.LimitedReader{R: bytes.NewReader(text), N: 1 << 20}, most, nil)
		if err == nil && len(objects) > most || err != nil && objects != nil {
			t.Errorf("%d objects and %v", len(objects), err)
		}
	})
}

func TestLimitsAndFaults(t *testing.T) {
	cases := map[string]struct {
		as     string
		limits sandbox.Limits
		in     build.Input
		want   error
		says   string
	}{
		"what kustomize says is said": {
			as: serves, want: build.ErrKustomize, says: "no resource matches strategic merge patch",
			in: build.Input{Files: map[string][]byte{
				"kustomization.yaml": []byte("openapi: {version: v1.21.2}\nresources: [a.yaml]\npatches: [{path: p.yaml}]\n"),
				"p.yaml":             []byte("kind: Deployment\napiVersion: apps/v1\nmetadata: {name: missing}\n"),
				"a.yaml":             []byte(configMaps(1)),
			}},
		},
		"too much memory":             {as: greedy, in: input(1), want: build.ErrTooLarge, says: "split the folder"},
		"too much time":               {as: serves, limits: sandbox.Limits{CPU: time.Second}, in: input(9000), want: build.ErrTooLarge, says: "split the folder"},
		"too large an answer":         {as: serves, limits: sandbox.Limits{Output: 1000}, in: input(100), want: build.ErrTooLarge, says: "too many bytes"},
		"all of it gives way":         {as: polite, in: input(1), want: build.ErrKustomize, says: fmt.Sprintf(`"policy %d, ends first by 1000"`, unix.SCHED_IDLE)},
		"a process that breaks":       {as: breaks, in: input(1), want: build.ErrKustomize, says: "it broke"},
		"one that says what it likes": {as: babble, in: input(1), want: build.ErrKustomize, says: "no answer that can be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if raced && tc.as == greedy {
				t.Skip("the race detector takes several times the memory, and may be who runs out of it: make test looks without it")
			}
			_, err := build.NewApart(build.Limits{}, runner(tc.limits, tc.as)).Build(t.Context(), tc.in)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v, want %v with %q", err, tc.want, tc.says)
			}
		})
	}
}

// TestAProcessThatSomebodyKills checks that a killed process, as on a machine
// that runs out of memory, is not taken for a fault of the files, so that they
// are built again.
func TestAProcessThatSomebodyKills(t *testing.T) {
	_, err := build.NewApart(build.Limits{}, runner(sandbox.Limits{}, killed)).Build(t.Context(), input(1))
	if err == nil || errors.Is(err, build.ErrTooLarge) || errors.Is(err, build.ErrKustomize) || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("error = %v, want one that is not about the files", err)
	}
}

// TestAProcessThatHangs checks that a process that does nothing ends with the
// context.
func TestAProcessThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it was deleted")
	cancel(why)
	_, err := build.NewApart(build.Limits{}, runner(sandbox.Limits{}, hangs)).Build(ctx, input(1))
	if !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, why)
	}
}
