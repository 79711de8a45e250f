package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-io/flotilla/bench/fakes"
	"github.com/flotilla-io/flotilla/bench/results"
)

// replicas is how many a Deployment whose status is measured has in each member.
const replicas = 3

// reporting is a Deployment with some replicas.
func reporting(name, of string, paused bool) *appsv1.Deployment {
	d := deployment(name, of, paused)
	n := int32(replicas)
	d.Spec.Replicas = &n
	return d
}

// flip is one change of a status.
type flip struct {
	// Milliseconds from the member's report until the template shows it.
	Milliseconds float64 `json:"milliseconds"`
	// Until and All count writes: until the template showed it, and until all was
	// quiet again, with what the binding reports later.
	Until int64 `json:"writesUntilTheTemplateShowsIt"`
	All   int64 `json:"writesInAll"`
}

// statusFlip times changes of a member's status until the template shows them,
// one at a time.
func statusFlip(ctx context.Context, b *bench, r *results.Report) error {
	const of, crowd = "flip", 50
	if err := propagateReporting(ctx, b, of, crowd); err != nil {
		return err
	}
	seen := &arriving{name: of + "-0", at: make(chan time.Time, 1)}
	if err := follow(ctx, b, &appsv1.Deployment{}, &appsv1.DeploymentList{}, seen.see); err != nil {
		return err
	}
	ready := make([]int, len(b.fakes.Members))
	for i := range ready {
		ready[i] = replicas
	}
	samples := make([]flip, 0, b.flips)
	const warm = 5
	for i := range b.flips + warm {
		member := i % len(ready)
		// Down, further down, and up again: two changes of health and one of numbers.
		ready[member] = (ready[member] + replicas - 1) % replicas
		if ready[member] == 0 {
			ready[member] = replicas
		}
		sample, err := flipOnce(ctx, b, seen, member, ready)
		if err != nil {
			return err
		}
		if i >= warm {
			samples = append(samples, sample)
		}
	}
	reportFlips(r, samples)
	return r.Raw("status-flip", samples)
}

// flipOnce has one member report its number, and waits until nothing is left of
// it.
func flipOnce(ctx context.Context, b *bench, seen *arriving, member int, ready []int) (flip, error) {
	const rest = 1500 * time.Millisecond // longer than a binding waits
	before, err := b.quiet(ctx, rest)
	if err != nil {
		return flip{}, err
	}
	sum := 0
	for _, n := range ready {
		sum += n
	}
	seen.expect(sum)
	reported, err := b.fakes.Ask(fmt.Sprintf("flip %d %s/%s %d", member, namespace, seen.name, ready[member]))
	if err != nil {
		return flip{}, err
	}
	at, err := seen.wait(ctx)
	if err != nil {
		return flip{}, err
	}
	then, err := b.revision(ctx)
	if err != nil {
		return flip{}, err
	}
	after, err := b.quiet(ctx, rest)
	if err != nil {
		return flip{}, err
	}
	return flip{Milliseconds: float64(at.Sub(reported.At).Microseconds()) / 1000, Until: then - before, All: after - before}, nil
}

func reportFlips(r *results.Report, samples []flip) {
	var took, until, all []float64
	for _, s := range samples {
		took, until, all = append(took, s.Milliseconds), append(until, float64(s.Until)), append(all, float64(s.All))
	}
	r.Note("status-flip", "a member's status until the template shows it, p50", results.Percentile(took, 0.5), "ms")
	r.AtMost("status-flip", "a member's status until the template shows it, p99", results.Percentile(took, 0.99), "ms", 500)
	r.AtMost("status-flip", "writes until the template shows it, most", results.Percentile(until, 1), "writes", 2)
	r.Note("status-flip", "writes in all, with what the binding tells later, most", results.Percentile(all, 1), "writes")
}

// arriving waits for a sum of replicas at a template.
type arriving struct {
	name string
	want atomic.Int64
	at   chan time.Time
}

func (a *arriving) see(d *appsv1.Deployment) {
	if d.Name != a.name || int64(d.Status.ReadyReplicas) != a.want.Load() {
		return
	}
	select {
	case a.at <- time.Now():
	default: // seen before
	}
}

func (a *arriving) expect(sum int) {
	a.want.Store(int64(sum))
	select {
	case <-a.at:
	default:
	}
}

func (a *arriving) wait(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, fakes.Timeout)
	defer cancel()
	select {
	case at := <-a.at:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("wait until %s counts %d ready replicas: %w", a.name, a.want.Load(), ctx.Err())
	}
}

// propagateReporting joins the fake members and carries n Deployments to them,
// and waits until their statuses are back.
func propagateReporting(ctx context.Context, b *bench, of string, n int) error {
	if err := b.gather(ctx); err != nil {
		return err
	}
	if err := b.hub.Create(ctx, policyFor(of)); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	if err := b.createMany(ctx, of, n, reporting); err != nil {
		return err
	}
	return awaitStatuses(ctx, b, of, n)
}

// awaitStatuses waits until n templates count all replicas, and all is quiet.
func awaitStatuses(ctx context.Context, b *bench, of string, n int) error {
	want := int32(replicas * len(b.fakes.Members))
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		var list appsv1.DeploymentList
		if err := b.hub.List(ctx, &list, inGroup(of)...); err != nil {
			return false, err
		}
		back := 0
		for i := range list.Items {
			if list.Items[i].Status.ReadyReplicas == want {
				back++
			}
		}
		return back == n, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %d Deployments count all replicas: %w", n, err)
	}
	_, err = b.quiet(ctx, 2*time.Second)
	return err
}

// statusStorm counts what it costs that all statuses change each second.
func statusStorm(ctx context.Context, b *bench, r *results.Report) error {
	const of = "storm"
	if err := propagateReporting(ctx, b, of, b.apps); err != nil {
		return err
	}
	before, err := b.count(ctx)
	if err != nil {
		return err
	}
	storm, err := b.fakes.Ask("storm " + b.storm.String())
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := awaitStatuses(ctx, b, of, b.apps); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := b.count(ctx)
	if err != nil {
		return err
	}
	cost := after.since(before)
	what := fmt.Sprintf("%d Deployments × %d whose status flips each second for %s: ", b.apps, len(b.fakes.Members), b.storm)
	share, number := cost.Requests.Conflicts()
	r.AtMost("status-storm", what+"conflicts", share*100, "%", 0.1)
	r.Note("status-storm", what+"conflicts, number", number, "conflicts")
	r.Note("status-storm", what+"flips", float64(storm.Flips), "flips")
	r.Note("status-storm", what+"writes", float64(cost.Revision), "writes")
	r.Note("status-storm", what+"writes per flip", float64(cost.Revision)/float64(storm.Flips), "writes")
	r.Note("status-storm", what+"all right and quiet again after", took.Seconds()-2, "s")
	for name, seconds := range cost.CPU {
		r.Note("status-storm", what+"CPU time, "+name, seconds, "s")
	}
	r.Note("status-storm", what+"peak memory, control plane", cost.Peak["control plane"], "MiB")
	return r.Raw("status-storm", map[string]any{"flips": storm.Flips, "settledSeconds": took.Seconds(), "counters": cost})
}
