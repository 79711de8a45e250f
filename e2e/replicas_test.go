package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// replicas are control planes on one store, and a member.
type replicas struct {
	*world
	// flags are what all of them have in common.
	flags []string
}

// startReplicas runs the first replica with a member, on a store of the test's own.
func startReplicas(t *testing.T) *replicas {
	t.Helper()
	dir := fleet.Folder(t)
	store, err := etcd.Start(t.Context(), etcd.Options{DataDir: filepath.Join(dir, "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	r := &replicas{flags: []string{"--etcd-servers", store.Endpoints()[0], "--seal-key-file", filepath.Join(dir, "seal.key")}}
	r.world = of(fleet.Own(t, fleet.Options{Dir: dir, Members: []string{"solo"}, HubArgs: r.flags}))
	r.Hub.Name += " a"
	return r
}

// start runs one more replica, in a folder of its own.
func (r *replicas) start(t *testing.T, name string) *localfleet.Process {
	t.Helper()
	p, err := r.NewReplica(t.Context(), name, r.flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(p.Start(), p.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	return p
}

// logged counts how often a program has logged a message.
func logged(t *testing.T, p *localfleet.Process, what string) int {
	t.Helper()
	log, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte(what))
}

// leader waits until one of some replicas has begun to lead anew.
func leader(t *testing.T, led map[*localfleet.Process]int) *localfleet.Process {
	t.Helper()
	var found *localfleet.Process
	eventually(t, time.Minute, "another replica leads", func(context.Context) error {
		for p, before := range led {
			if logged(t, p, hub.Leading) > before {
				found = p
				return nil
			}
		}
		return errors.New("none does")
	})
	return found
}

// state is what must not change, by kind and name: who it is, and its last write.
func state(ctx context.Context, at client.Client, namespace string, lists ...client.ObjectList) (map[string]string, error) {
	out := map[string]string{}
	for _, list := range lists {
		if err := at.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		switch list := list.(type) {
		case *appsv1.DeploymentList:
			for _, d := range list.Items {
				out["deployment "+d.Name] = string(d.UID) + " " + d.ResourceVersion
			}
		case *workv1alpha1.WorkList:
			for _, w := range list.Items {
				out["work "+w.Name] = string(w.UID) + " " + w.ResourceVersion
			}
		}
	}
	return out, nil
}

// TestAnOldLeaderThatWakes stops a leader in the middle of many writes, has another
// replica change everything, and wakes the old one.
func TestAnOldLeaderThatWakes(t *testing.T) {
	t.Parallel() // it has a fleet of its own
	r := startReplicas(t)
	a := r.Hub
	b := r.start(t, "b")
	ns := "many"
	solo := r.members["solo"]

	kubectl(t, a, many(ns, "nginx:1.29"), true)
	r.Eventually(t, time.Minute, "some Deployments have arrived", func(ctx context.Context) error {
		return someIn(ctx, solo, ns, "nginx:1.29")
	})
	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Resume() })
	if now := leader(t, map[*localfleet.Process]int{b: 0}); now != b {
		t.Fatal("who leads?")
	}

	// The other one changes half of them, and removes the rest.
	kubectl(t, b, many(ns, "nginx:1.30"), false)
	for i := range manyApps / 2 {
		kubectlRun(t, b, "", "delete", "deployment", fmt.Sprintf("web-%d", i), "-n", ns, "--wait=false")
	}
	r.Eventually(t, 2*time.Minute, "the member has what is wanted", func(ctx context.Context) error {
		return onlyHas(ctx, solo, ns, "nginx:1.30", manyApps/2)
	})
	bHub, err := fleet.Client(b)
	if err != nil {
		t.Fatal(err)
	}
	rest := func(ctx context.Context) (map[string]string, error) {
		inMember, err1 := state(ctx, solo, ns, &appsv1.DeploymentList{})
		inHub, err2 := state(ctx, bHub, "karmada-es-solo", &workv1alpha1.WorkList{})
		maps.Copy(inMember, inHub)
		return inMember, errors.Join(err1, err2)
	}
	before := quiet(t, rest)

	if err := a.Resume(); err != nil {
		t.Fatal(err)
	}
	r.Eventually(t, time.Minute, "the old leader has found out", func(context.Context) error {
		if logged(t, a, "the loops have stopped, and wait for the lease again") == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	after := quiet(t, rest)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the old leader wrote (-before +after):\n%s", diff)
	}
	// Its server goes on meanwhile, and is as good as the other.
	if out := kubectlRun(t, a, "", "get", "deployments", "-n", ns, "-o", "name"); strings.Count(out, "deployment") != manyApps/2 {
		t.Errorf("the old leader's server shows:\n%s", out)
	}

	// Its loops start again when it gets the lease again, in the same process.
	pid, led := a.PID(), logged(t, a, hub.Leading)
	c := r.start(t, "c")
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	now := leader(t, map[*localfleet.Process]int{a: led, c: 0})
	t.Logf("%s leads", now.Name)
	if now == c {
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		leader(t, map[*localfleet.Process]int{a: led})
	}
	kubectl(t, a, many(ns, "nginx:1.31"), false)
	r.Eventually(t, 2*time.Minute, "changes arrive", func(ctx context.Context) error { return onlyHas(ctx, solo, ns, "nginx:1.31", manyApps) })
	if a.PID() != pid {
		t.Error("it is another process")
	}
	if err := fleet.Calm(a); err != nil {
		t.Error(err)
	}
}

// TestClientsChangeOver uses what one replica gave out at the others, while replicas
// come and go.
func TestClientsChangeOver(t *testing.T) {
	t.Parallel() // it has a fleet of its own
	r := startReplicas(t)
	a, b := r.Hub, r.start(t, "b")
	token := strings.TrimSpace(kubectlRun(t, a, "", "create", "token", "default"))
	for _, at := range []*localfleet.Process{a, b} {
		for _, from := range []*localfleet.Process{a, b} {
			cfg, err := at.Config()
			if err != nil {
				t.Fatal(err)
			}
			if out, err := run(t.Context(), nil, "flotilla", "kubectl", "--kubeconfig", from.Kubeconfig, "--server", cfg.Host, "get", "clusters"); err != nil {
				t.Errorf("%s with the kubeconfig of %s: %v\n%s", at.Name, from.Name, err, out)
			}
			out, err := run(t.Context(), nil, "flotilla", "kubectl", "--kubeconfig", os.DevNull, "--server", cfg.Host, "--certificate-authority",
				filepath.Join(filepath.Dir(from.Kubeconfig), "pki", "ca.crt"), "--token", token, "auth", "whoami")
			if err != nil || !strings.Contains(out, "system:serviceaccount:default:default") {
				t.Errorf("%s with a token of the first: %v\n%s", at.Name, err, out)
			}
		}
	}
	if err := a.Kill(); err != nil {
		t.Fatal(err)
	}
	leader(t, map[*localfleet.Process]int{b: 0})
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := kubectlRun(t, a, "", "get", "cm", "-n", "kube-public", "cluster-info", "-o", "yaml"); !strings.Contains(out, "server:") {
		t.Errorf("cluster-info:\n%s", out)
	}
}

// kubectl applies manifests through a replica.
func kubectl(t *testing.T, at *localfleet.Process, manifests string, makeNamespace bool) {
	t.Helper()
	if makeNamespace {
		kubectlRun(t, at, "", "create", "namespace", "many")
	}
	kubectlRun(t, at, manifests, "apply", "--server-side", "-f", "-")
}

func kubectlRun(t *testing.T, at *localfleet.Process, stdin string, args ...string) string {
	t.Helper()
	out, err := run(t.Context(), []byte(stdin), "flotilla", append([]string{"kubectl", "--kubeconfig", at.Kubeconfig}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// onlyHas is nil if a namespace of a member has so many Deployments, all with an
// image, and nothing is on its way there.
func onlyHas(ctx context.Context, member client.Client, namespace, image string, count int) error {
	list := &appsv1.DeploymentList{}
	if err := member.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, d := range list.Items {
		switch found := d.Spec.Template.Spec.Containers[0].Image; {
		case found != image:
			return fmt.Errorf("%s has %s", d.Name, found)
		case d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != 1 || d.Status.UpdatedReplicas != 1 || d.Status.Replicas != 1:
			return fmt.Errorf("%s is not rolled out", d.Name)
		}
	}
	if len(list.Items) != count {
		return fmt.Errorf("there are %d, want %d", len(list.Items), count)
	}
	return nil
}

// quietLooks is how many looks in a row have to see the same.
const quietLooks = 15

// quiet returns what is there once it does not change any more.
func quiet(t *testing.T, read func(context.Context) (map[string]string, error)) map[string]string {
	t.Helper()
	var last map[string]string
	same := 0
	eventually(t, time.Minute, "all is at rest", func(ctx context.Context) error {
		now, err := read(ctx)
		if err != nil {
			return err
		}
		if same++; !maps.Equal(now, last) {
			same = 0
		}
		last = now
		if same < quietLooks {
			return errors.New("it changes")
		}
		return nil
	})
	return last
}
