package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// bench is a fleet that is measured.
type bench struct {
	options
	dir     string
	fleet   *localfleet.Fleet
	hub     client.Client
	kube    kubernetes.Interface
	members map[string]kubernetes.Interface
}

// namespace holds the templates that are measured.
const namespace = "bench"

// start runs the fleet and joins its members.
func start(ctx context.Context, opts options, dir string) (*bench, error) {
	bin, err := filepath.Abs(opts.bin)
	if err != nil {
		return nil, fmt.Errorf("find the programs: %w", err)
	}
	names := make([]string, opts.members)
	for i := range names {
		names[i] = fmt.Sprintf("member%d", i+1)
	}
	fleet, err := localfleet.Start(ctx, localfleet.Options{
		Flotillad: filepath.Join(bin, "flotillad"), Dir: dir, Members: names, Nodes: 1,
	})
	if err != nil {
		return nil, err
	}
	b := &bench{options: opts, dir: dir, fleet: fleet, members: map[string]kubernetes.Interface{}}
	if err := b.connect(ctx, bin); err != nil {
		return nil, errors.Join(err, fleet.Stop())
	}
	return b, nil
}

func (b *bench) connect(ctx context.Context, bin string) error {
	cfg, err := b.fleet.Hub.Config()
	if err != nil {
		return err
	}
	if b.hub, err = client.New(cfg, client.Options{Scheme: scheme.New()}); err != nil {
		return fmt.Errorf("connect to the control plane: %w", err)
	}
	if b.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("connect to the control plane: %w", err)
	}
	for name, member := range b.fleet.Members {
		cfg, err := member.Config()
		if err != nil {
			return err
		}
		if b.members[name], err = kubernetes.NewForConfig(cfg); err != nil {
			return fmt.Errorf("connect to %s: %w", name, err)
		}
		join := exec.CommandContext(ctx, filepath.Join(bin, "flotilla"), "join", name, "--kubeconfig", b.fleet.Hub.Kubeconfig,
			"--cluster-kubeconfig", member.Kubeconfig, "--cluster-context", name)
		if out, err := join.CombinedOutput(); err != nil {
			return fmt.Errorf("join %s: %w: %s", name, err, out)
		}
	}
	return b.prepare(ctx)
}

// prepare makes the namespace and waits until it is in every member.
func (b *bench) prepare(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := b.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, member := range b.members {
			if _, err := member.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// workTree is an empty folder for Git.
func (b *bench) workTree() (string, error) {
	tree, err := os.MkdirTemp(b.dir, "tree-")
	if err != nil {
		return "", fmt.Errorf("make a work tree: %w", err)
	}
	return tree, nil
}

func (b *bench) pids() map[string]int {
	out := map[string]int{"control plane": b.fleet.Hub.PID()}
	for name, member := range b.fleet.Members {
		out[name] = member.PID()
	}
	return out
}
