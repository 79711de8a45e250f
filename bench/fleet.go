package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/bench/fakes"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// bench is a fleet that is measured.
type bench struct {
	options
	dir     string
	fleet   *localfleet.Fleet
	hub     client.WithWatch
	kube    kubernetes.Interface
	members map[string]kubernetes.Interface
	fakes   *fakes.Fleet // nil where there are none
}

// setup says what a fleet is made of.
type setup struct {
	members []string // simulated ones
	fakes   int      // API servers that only answer
	hubArgs []string
}

// namespace holds the templates that are measured.
const namespace = "bench"

// start runs the fleet and joins its members.
func start(ctx context.Context, opts options, s setup, dir string) (_ *bench, err error) {
	bin, err := filepath.Abs(opts.bin.dir)
	if err != nil {
		return nil, fmt.Errorf("find the programs: %w", err)
	}
	b := &bench{options: opts, dir: dir, members: map[string]kubernetes.Interface{}}
	b.fleet, err = localfleet.Start(ctx, localfleet.Options{
		Flotillad: filepath.Join(bin, "flotillad"), Dir: dir, Members: s.members, Nodes: 1, HubArgs: slices.Concat([]string{localfleet.LoopbackSources}, s.hubArgs, strings.Fields(opts.bin.hub)),
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	if err := b.connect(ctx, bin); err != nil {
		return nil, err
	}
	if s.fakes > 0 {
		if b.fakes, err = fakes.Start(ctx, s.fakes); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// stop ends all that start has started.
func (b *bench) stop() error {
	err := b.fleet.Stop()
	if b.fakes != nil {
		err = errors.Join(err, b.fakes.Stop())
	}
	return err
}

// clientOf reaches a control plane by a connection of its own.
func clientOf(hub *localfleet.Process) (client.WithWatch, error) {
	cfg, err := hub.Config()
	if err != nil {
		return nil, err
	}
	out, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	return out, nil
}

func (b *bench) connect(ctx context.Context, bin string) error {
	cfg, err := b.fleet.Hub.Config()
	if err != nil {
		return err
	}
	if b.hub, err = clientOf(b.fleet.Hub); err != nil {
		return err
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
	out := map[string]int{"control plane": b.fleet.Hub.PID(), "benchmark": os.Getpid()}
	for name, member := range b.fleet.Members {
		out[name] = member.PID()
	}
	if b.fakes != nil {
		out["fake members"] = b.fakes.PID()
	}
	return out
}
