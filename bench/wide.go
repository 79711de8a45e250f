package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/fakes"
	"github.com/flotilla-io/flotilla/bench/firsts"
	"github.com/flotilla-io/flotilla/bench/results"
)

// wideGroup is the group of the Deployments that run in every cluster.
const wideGroup = "wide"

// placed is how long after the answer to a user each step of one placement was
// done, in milliseconds.
type placed struct {
	Stored  float64 `json:"placementStored"`
	First   float64 `json:"inTheFirstMember"`
	Members float64 `json:"inAllMembers"`
	Applied float64 `json:"fullyApplied"`
	Status  float64 `json:"templateStatus"`
}

// wide times placements on many clusters, one at a time, from the control
// plane's answer to the user on.
func wide(ctx context.Context, b *bench, r *results.Report) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &widening{bench: b, seen: firsts.New()}
	if err := w.begin(ctx); err != nil {
		return err
	}
	const warm = 3
	if _, err := w.place(ctx, "warm", warm); err != nil {
		return err
	}
	before, err := b.count(ctx)
	if err != nil {
		return err
	}
	samples, err := w.place(ctx, wideGroup, b.changes)
	if err != nil {
		return err
	}
	after, err := b.count(ctx)
	if err != nil {
		return err
	}
	w.record(r, samples, after.since(before))
	return r.Raw("wide", map[string]any{"milliseconds": samples, "counters": after.since(before)})
}

// widening is the measurement of placements on many clusters.
type widening struct {
	*bench
	seen *firsts.Firsts
}

// place makes n placements, and after each waits until nothing is left of it.
func (w *widening) place(ctx context.Context, prefix string, n int) ([]placed, error) {
	if _, err := w.quiet(ctx, time.Second); err != nil {
		return nil, err
	}
	out := make([]placed, n)
	for i := range out {
		var err error
		if out[i], err = w.placeOne(ctx, fmt.Sprintf("%s-%d", prefix, i)); err != nil {
			return nil, err
		}
		if _, err := w.quiet(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// begin joins the fake members and follows what becomes of Deployments.
func (w *widening) begin(ctx context.Context) error {
	if err := w.gather(ctx); err != nil {
		return err
	}
	if err := w.hub.Create(ctx, policyFor(wideGroup)); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	return w.watch(ctx)
}

// What is seen of a Deployment on its way.
const (
	stored  = "a placement on all clusters of "
	applied = "the condition FullyApplied of "
	back    = "the status of "
)

// watch notes the steps that are seen on the control plane.
func (w *widening) watch(ctx context.Context) error {
	err := follow(ctx, w.bench, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ResourceBindingList{}, func(rb *workv1alpha2.ResourceBinding) {
		name := rb.Spec.Resource.Name
		if len(rb.Spec.Clusters) == len(w.fakes.Members) {
			w.seen.See(stored+name, name)
		}
		if meta.IsStatusConditionTrue(rb.Status.Conditions, workv1alpha2.FullyApplied) {
			w.seen.See(applied+name, name)
		}
	})
	if err != nil {
		return err
	}
	return follow(ctx, w.bench, &appsv1.Deployment{}, &appsv1.DeploymentList{}, func(d *appsv1.Deployment) {
		if int(d.Status.ReadyReplicas) == len(w.fakes.Members) && d.Status.ObservedGeneration == d.Generation {
			w.seen.See(back+d.Name, d.Name)
		}
	})
}

// placeOne creates a Deployment and times its way.
func (w *widening) placeOne(ctx context.Context, name string) (placed, error) {
	if err := w.hub.Create(ctx, deployment(name, wideGroup, false)); err != nil {
		return placed{}, fmt.Errorf("create the Deployment: %w", err)
	}
	answered := time.Now()
	arrival, err := w.fakes.Arrived(namespace + "/" + name)
	if err != nil {
		return placed{}, err
	}
	since := func(at time.Time) float64 { return float64(at.Sub(answered).Microseconds()) / 1000 }
	out := placed{First: since(arrival.First), Members: since(arrival.Last)}
	for what, into := range map[string]*float64{stored: &out.Stored, applied: &out.Applied, back: &out.Status} {
		at, err := w.seen.All(ctx, what+name, 1, fakes.Timeout)
		if err != nil {
			return placed{}, err
		}
		*into = since(at)
	}
	return out, nil
}

func (w *widening) record(r *results.Report, samples []placed, cost counters) {
	what := fmt.Sprintf("one placement on %d clusters, ", len(w.fakes.Members))
	steps := []struct {
		name string
		of   func(placed) float64
	}{
		{"stored", func(p placed) float64 { return p.Stored }},
		{"applied in all members", func(p placed) float64 { return p.Members }},
		{"FullyApplied", func(p placed) float64 { return p.Applied }},
		{"status of the template back", func(p placed) float64 { return p.Status }},
	}
	for _, s := range steps {
		took := make([]float64, len(samples))
		for i := range samples {
			took[i] = s.of(samples[i])
		}
		r.Note("8", what+s.name+", p50", results.Percentile(took, 0.5), "ms")
		if s.name == "applied in all members" {
			r.AtMost("8", what+s.name+", p90", results.Percentile(took, 0.9), "ms", 1000)
		} else {
			r.Note("8", what+s.name+", p90", results.Percentile(took, 0.9), "ms")
		}
		r.Note("8", what+s.name+", p99", results.Percentile(took, 0.99), "ms")
	}
	n := float64(len(samples))
	goal := float64(6 + 3*len(w.fakes.Members))
	r.AtMost("1", fmt.Sprintf("writes for one Deployment on %d clusters", len(w.fakes.Members)), float64(cost.Revision-int64(cost.Events))/n, "writes", goal)
	r.Note("8", what+"CPU time of the control plane", cost.CPU["control plane"]*1000/n, "ms")
	r.Note("8", what+"CPU time of the fake members", cost.CPU["fake members"]*1000/n, "ms")
	_, conflicts := cost.Requests.Conflicts()
	r.AtMost("3", fmt.Sprintf("conflicts for Deployments on %d clusters", len(w.fakes.Members)), conflicts, "conflicts", 0)
}
