package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/clusters"
	"github.com/flotilla-io/flotilla/bench/firsts"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func teamOf(i int) string { return fmt.Sprintf("team-%d", i) }

// teamPolicy carries the ConfigMaps of one team.
func teamPolicy(i int) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: teamOf(i)},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{
				APIVersion: "v1", Kind: "ConfigMap",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": teamOf(i)}},
			}},
			Placement: policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu-central-00"}}},
		},
	}
}

// matching times how long it takes to find the policy of a template among many
// that select by label.
func matching(_ context.Context, b *bench, r *results.Report) error {
	policies := make([]policyv1alpha1.Policy, b.policies)
	for i := range policies {
		p := teamPolicy(i)
		p.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: teamOf(i)}
		policies[i] = p
	}
	directory := propagation.NewDirectory(policies, nil, propagation.SkipRules{})
	templates := make([]*unstructured.Unstructured, b.policies*b.templates)
	for i := range templates {
		templates[i] = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"namespace": namespace, "name": fmt.Sprintf("settings-%d", i),
			"labels": map[string]any{"team": teamOf(i % b.policies), "app": "shop", "tier": "web"},
		}}}
	}
	begin := time.Now()
	for i, template := range templates {
		d := propagation.Decide(directory.Case(template))
		if d.Outcome != propagation.Carried || d.Policy != policies[i%b.policies] {
			return fmt.Errorf("%s is not carried by its team's policy: %s", template.GetName(), d.Why)
		}
	}
	each := time.Since(begin).Seconds() * 1e6 / float64(len(templates))
	r.AtMost("match", fmt.Sprintf("%d templates find their policy among %d, each", len(templates), b.policies), each, "µs", 100)
	return nil
}

// What is seen of a binding.
const touched = "a change after the edit"

func onClusters(n int) string { return fmt.Sprintf("a placement on %d clusters", n) }

// oneOfMany counts what an edit of one policy touches when there are many.
func oneOfMany(ctx context.Context, b *bench, r *results.Report) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := firsts.New()
	var edited atomic.Bool
	err := follow(ctx, b, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ResourceBindingList{}, func(rb *workv1alpha2.ResourceBinding) {
		if n := len(rb.Spec.Clusters); n > 0 {
			seen.See(onClusters(n), rb.Name)
		}
		if edited.Load() {
			seen.See(touched, rb.Name)
		}
	})
	if err != nil {
		return err
	}
	if err := b.register(ctx, clusters.Many(2)); err != nil {
		return err
	}
	took, err := b.fill(ctx, seen)
	if err != nil {
		return err
	}
	before, err := b.count(ctx)
	if err != nil {
		return err
	}
	edited.Store(true)
	begin := time.Now()
	last, err := b.widen(ctx, seen, b.policies/2)
	if err != nil {
		return err
	}
	if _, err := b.quiet(ctx, 4*time.Second); err != nil {
		return err
	}
	after, err := b.count(ctx)
	if err != nil {
		return err
	}
	cost := after.since(before)
	all, _ := seen.Count(touched)
	what := fmt.Sprintf("an edit of one of %d policies with %d templates each", b.policies, b.templates)
	// Beside its bindings, the policy itself is written, and its status twice at most.
	r.AtMost("match", what+": writes", float64(cost.Revision), "writes", float64(b.templates+3))
	r.AtMost("match", what+": bindings of others that it touches", float64(all-b.templates), "bindings", 0)
	r.Note("match", what+": until the last of its bindings is placed anew", float64(last.Sub(begin).Milliseconds()), "ms")
	r.Note("match", what+": CPU time of the control plane", cost.CPU["control plane"]*1000, "ms")
	r.Note("match", fmt.Sprintf("%d policies and their %d templates made and placed", b.policies, b.policies*b.templates), took.Seconds(), "s")
	return r.Raw("one-of-many", map[string]any{"fillSeconds": took.Seconds(), "counters": cost})
}

// fill makes the policies, and then the templates, and waits until all are
// placed.
func (b *bench) fill(ctx context.Context, seen *firsts.Firsts) (time.Duration, error) {
	begin := time.Now()
	err := sideBySide(ctx, b.policies, func(ctx context.Context, i int) error {
		return b.hub.Create(ctx, teamPolicy(i))
	})
	if err != nil {
		return 0, fmt.Errorf("create the policies: %w", err)
	}
	err = sideBySide(ctx, b.policies*b.templates, func(ctx context.Context, i int) error {
		return b.hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("settings-%d", i), Labels: map[string]string{"team": teamOf(i % b.policies)},
		}})
	})
	if err != nil {
		return 0, fmt.Errorf("create the templates: %w", err)
	}
	last, err := seen.All(ctx, onClusters(1), b.policies*b.templates, 5*time.Minute)
	if err != nil {
		return 0, err
	}
	_, err = b.quiet(ctx, 4*time.Second)
	return last.Sub(begin), err
}

// widen has one policy place on one cluster more, and returns when the last of
// its bindings is.
func (b *bench) widen(ctx context.Context, seen *firsts.Firsts, i int) (time.Time, error) {
	policy := &policyv1alpha1.PropagationPolicy{}
	if err := b.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: teamOf(i)}, policy); err != nil {
		return time.Time{}, fmt.Errorf("read the policy: %w", err)
	}
	edited := policy.DeepCopy()
	edited.Spec.Placement = policyv1alpha1.Placement{}
	if err := b.hub.Patch(ctx, edited, client.MergeFrom(policy)); err != nil {
		return time.Time{}, fmt.Errorf("edit the policy: %w", err)
	}
	return seen.All(ctx, onClusters(2), b.templates, time.Minute)
}
