package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/agents"
	"github.com/flotilla-io/flotilla/bench/results"
)

const (
	// works is how many Works the first agent has; the others have none.
	works = 100
	// warmUp is how long all agents are left alone before they are measured: those
	// that have just started give memory back once a minute.
	warmUp = 150 * time.Second
	// atRest is for how long they are measured.
	atRest = 2 * time.Minute
)

// idleAgents measures what agents at rest cost: as many real ones as there are
// fake members, each registered by a token.
func idleAgents(ctx context.Context, b *bench, r *results.Report) (err error) {
	begin := time.Now()
	cfg, err := b.fleet.Hub.Config()
	if err != nil {
		return err
	}
	binary, err := filepath.Abs(filepath.Join(b.bin.dir, "flotilla-agent"))
	if err != nil {
		return fmt.Errorf("find the agent: %w", err)
	}
	fleet, err := agents.Start(ctx, agents.Options{
		Binary: binary, Dir: filepath.Join(b.dir, "agents"), Members: b.fakes, Hub: b.hub, Config: cfg,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Stop()) }()
	if err := assembled(ctx, b); err != nil {
		return err
	}
	r.Note("agents", fmt.Sprintf("%d agents, %d at the same time: all clusters ready after", len(b.fakes.Members), agents.Together), time.Since(begin).Seconds(), "s")
	if err := occupy(ctx, b); err != nil {
		return err
	}
	if err := sleep(ctx, warmUp); err != nil {
		return err
	}
	return errors.Join(watchRest(ctx, b, r, fleet), reportSizes(r, fleet))
}

// watchRest counts what happens while nothing does.
func watchRest(ctx context.Context, b *bench, r *results.Report, fleet *agents.Fleet) error {
	before, err := b.count(ctx)
	spent, wrong := fleet.CPUSeconds()
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	begin := time.Now()
	if err := sleep(ctx, atRest); err != nil {
		return err
	}
	after, err := b.count(ctx)
	spentNow, wrong := fleet.CPUSeconds()
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	cost, seconds := after.since(before), time.Since(begin).Seconds()
	what := fmt.Sprintf("%d agents at rest: ", len(b.fakes.Members))
	reportRates(r, what, cost, seconds)
	r.Note("agents", what+"CPU time, agents", (spentNow-spent)/seconds*100, "% of a core")
	r.Note("agents", what+"CPU time, control plane", cost.CPU["control plane"]/seconds*100, "% of a core")
	return r.Raw("agents", map[string]any{"seconds": seconds, "counters": cost})
}

// reportRates reports the requests, all of them and the most frequent kinds.
func reportRates(r *results.Report, what string, cost counters, seconds float64) {
	rates, all := map[string]float64{}, 0.0
	for key, n := range cost.Requests {
		rates[key[:strings.LastIndexByte(key, ' ')]] += n / seconds // without the code
		all += n / seconds
	}
	r.AtMost("agents", what+"requests, those of the control plane's loops included", all, "requests/s", 50)
	const shown = 8
	keys := slices.SortedFunc(maps.Keys(rates), func(x, y string) int { return int((rates[y] - rates[x]) * 1000) })
	for _, key := range keys[:min(shown, len(keys))] {
		r.Note("agents", what+strings.TrimSpace(key), rates[key], "requests/s")
	}
	r.Note("agents", what+"writes", float64(cost.Revision)/seconds, "writes/s")
}

// reportSizes reports the agent with Works, which is the first, and of the others.
func reportSizes(r *results.Report, fleet *agents.Fleet) error {
	sizes, err := fleet.Sizes()
	if err != nil {
		return err
	}
	r.AtMost("agents", fmt.Sprintf("resident memory of an agent with %d Works, at rest", works), sizes[0].Resident, "MiB", 30)
	r.Note("agents", "of it what is no file", sizes[0].Anonymous, "MiB")
	r.Note("agents", "its peak", sizes[0].Peak, "MiB")
	var others []float64
	for _, s := range sizes[1:] {
		others = append(others, s.Resident)
	}
	if len(others) > 0 {
		r.Note("agents", "resident memory of agents without Works, median", results.Percentile(others, 0.5), "MiB")
		r.Note("agents", "resident memory of agents without Works, most", results.Percentile(others, 1), "MiB")
	}
	return nil
}

// occupy gives the first member its Works, and waits until they are applied.
func occupy(ctx context.Context, b *bench) error {
	const of = "occupied"
	policy, first := policyFor(of), b.fakes.Members[0].Name
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{first}}
	if err := b.hub.Create(ctx, policy); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	if err := b.createMany(ctx, of, works, deployment); err != nil {
		return err
	}
	applied := 0
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var list workv1alpha1.WorkList
		if err := b.hub.List(ctx, &list, client.InNamespace(workv1alpha2.ExecutionNamespace(first))); err != nil {
			return false, err
		}
		applied = 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, workv1alpha1.WorkApplied) {
				applied++
			}
		}
		return applied >= works, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d Works are applied: %w", applied, works, err)
	}
	return nil
}

// sleep lets time pass in which others do what is measured.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
