package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// rest counts what is written while nothing happens but polls of a repository
// that does not change.
func rest(ctx context.Context, b *bench, r *results.Report) error {
	if err := b.followRepository(ctx); err != nil {
		return err
	}
	before, err := b.quiet(ctx, 3*time.Second)
	if err != nil {
		return err
	}
	polled := b.fleet.Git.Requests()
	const polls = 20
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return b.fleet.Git.Requests()-polled >= polls, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %d polls of the repository: %w", polls, err)
	}
	after, err := b.revision(ctx)
	if err != nil {
		return err
	}
	r.AtMost("2", fmt.Sprintf("writes during %d unchanged polls", polls), float64(after-before), "writes", 0)
	return nil
}

// followRepository makes the fleet poll a repository each second.
func (b *bench) followRepository(ctx context.Context) error {
	if err := b.fleet.Git.Create(ctx, "fleet"); err != nil {
		return err
	}
	url := b.fleet.Git.URL("fleet")
	script := [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"commit", "--quiet", "--allow-empty", "-m", "nothing"},
		{"push", "--quiet", url, "main"},
	}
	tree, err := b.workTree()
	if err != nil {
		return err
	}
	for _, args := range script {
		if _, err := gitserver.Git(ctx, tree, args...); err != nil {
			return err
		}
	}
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: namespace},
		Spec: sourcev1.GitRepositorySpec{
			URL: url, Interval: metav1.Duration{Duration: time.Second},
			Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		},
	}
	if err := b.hub.Create(ctx, source); err != nil {
		return fmt.Errorf("create the GitRepository: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := b.hub.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
			return false, err
		}
		for _, condition := range source.Status.Conditions {
			if condition.Type == meta.ReadyCondition && condition.Status == metav1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the GitRepository: %w", err)
	}
	return nil
}

// restart counts what a restart of the control plane writes when nothing has
// changed.
func restart(ctx context.Context, b *bench, r *results.Report) error {
	before, err := b.quiet(ctx, 3*time.Second)
	if err != nil {
		return err
	}
	if err := b.fleet.Hub.Stop(); err != nil {
		return err
	}
	begin := time.Now()
	if err := b.fleet.Hub.Start(); err != nil {
		return err
	}
	if err := b.fleet.Hub.Ready(ctx); err != nil {
		return err
	}
	ready := time.Since(begin)
	after, err := b.quiet(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	var bindings workv1alpha2.ResourceBindingList
	if err := b.hub.List(ctx, &bindings); err != nil {
		return fmt.Errorf("count the bindings: %w", err)
	}
	r.AtMost("2", fmt.Sprintf("writes on a restart with %d bindings", len(bindings.Items)), float64(after-before), "writes", 0)
	cpu, err := usage.CPUSeconds(b.fleet.Hub.PID())
	if err != nil {
		return err
	}
	r.Note("2", fmt.Sprintf("ready again after a restart with %d bindings", len(bindings.Items)), ready.Seconds(), "s")
	r.Note("2", fmt.Sprintf("CPU time of a restart with %d bindings and ten seconds of rest", len(bindings.Items)), cpu, "s")
	return nil
}
