package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/bench/firsts"
	"github.com/flotilla-io/flotilla/bench/results"
)

// writers is how many requests a user who makes many objects sends side by side.
const writers = 8

// group is the label by which one measurement's Deployments are selected.
const group = "bench"

func deployment(name, of string, paused bool) *appsv1.Deployment {
	match := map[string]string{"app": name}
	replicas := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{group: of}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Paused:   paused,
			Selector: &metav1.LabelSelector{MatchLabels: match},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: match},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.29"}}},
			},
		},
	}
}

// policyFor propagates a measurement's Deployments to every member.
func policyFor(of string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: of, Namespace: namespace},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{
			APIVersion: "apps/v1", Kind: "Deployment",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{group: of}},
		}}},
	}
}

// oneDeployment counts what one Deployment costs until its status is back.
func oneDeployment(ctx context.Context, b *bench, r *results.Report) error {
	for _, paused := range []bool{true, false} {
		name := map[bool]string{true: "one-paused", false: "one"}[paused]
		if err := b.hub.Create(ctx, policyFor(name)); err != nil {
			return fmt.Errorf("create the policy: %w", err)
		}
		if err := b.once(ctx, "warm-"+name, name, paused); err != nil {
			return err
		}
		before, err := b.count(ctx)
		if err != nil {
			return err
		}
		if err := b.once(ctx, name, name, paused); err != nil {
			return err
		}
		after, err := b.count(ctx)
		if err != nil {
			return err
		}
		cost := after.since(before)
		goal := float64(6 + 3*b.options.members)
		label := map[bool]string{true: "paused, no pods", false: "with its pods"}[paused]
		r.AtMost("1", "writes for one Deployment, "+label, float64(cost.Revision-int64(cost.Events)), "writes", goal)
		r.AtMost("1", "Events for one Deployment, "+label, float64(cost.Events), "Events", 2)
		_, conflicts := cost.Requests.Conflicts()
		r.AtMost("3", "conflicts for one Deployment, "+label, conflicts, "conflicts", 0)
		if err := r.Raw(name, cost); err != nil {
			return err
		}
	}
	return nil
}

// once creates a Deployment and waits until its status came back and all is quiet.
func (b *bench) once(ctx context.Context, name, of string, paused bool) error {
	if _, err := b.quiet(ctx, 3*time.Second); err != nil {
		return err
	}
	if err := b.hub.Create(ctx, deployment(name, of, paused)); err != nil {
		return fmt.Errorf("create the Deployment: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var got appsv1.Deployment
		if err := b.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &got); err != nil {
			return false, err
		}
		back := got.Status.ObservedGeneration == got.Generation
		return back && (paused || int(got.Status.ReadyReplicas) == b.options.members), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the status of %s is back: %w", name, err)
	}
	_, err = b.quiet(ctx, 3*time.Second)
	return err
}

// latency times changes of one Deployment from the control plane's answer until
// they stand in every member.
func latency(ctx context.Context, b *bench, r *results.Report) error {
	const name = "latency"
	if err := b.hub.Create(ctx, policyFor(name)); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	seen := newSightings(b.members)
	if err := seen.start(ctx, name); err != nil {
		return err
	}
	if err := b.once(ctx, name, name, true); err != nil {
		return err
	}
	samples := make([]float64, 0, b.samples)
	const warm = 10
	for i := range b.samples + warm {
		label := fmt.Sprint(i)
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"bench":%q}}}}}`, label)
		obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := b.hub.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Errorf("change the Deployment: %w", err)
		}
		answered := time.Now()
		at, err := seen.all(ctx, label)
		if err != nil {
			return err
		}
		if i >= warm {
			samples = append(samples, float64(at.Sub(answered).Microseconds())/1000)
		}
		// Idle means that nothing is left of the change before.
		if _, err := b.quiet(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
	r.AtMost("4", "one change until it stands in all members, p50", results.Percentile(samples, 0.5), "ms", 15)
	r.AtMost("4", "one change until it stands in all members, p99", results.Percentile(samples, 0.99), "ms", 80)
	return r.Raw("latency-ms", samples)
}

// sightings notes when each member's Deployment got a mark.
type sightings struct {
	members map[string]kubernetes.Interface
	firsts  *firsts.Firsts
}

func newSightings(members map[string]kubernetes.Interface) *sightings {
	return &sightings{members: members, firsts: firsts.New()}
}

func (s *sightings) start(ctx context.Context, of string) error {
	for name, member := range s.members {
		factory := informers.NewSharedInformerFactoryWithOptions(member, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = labels.Set{group: of}.String() }))
		informer := factory.Apps().V1().Deployments().Informer()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.see(name, obj) },
			UpdateFunc: func(_, obj any) { s.see(name, obj) },
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", name, err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
	return nil
}

func (s *sightings) see(member string, obj any) {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return
	}
	s.firsts.See(d.Spec.Template.Annotations["bench"], member)
}

// all waits until every member has the mark, and returns when the last one got it.
func (s *sightings) all(ctx context.Context, label string) (time.Time, error) {
	return s.firsts.All(ctx, label, len(s.members), 30*time.Second)
}

// manyDeployments times the propagation of a thousand Deployments.
func manyDeployments(ctx context.Context, b *bench, r *results.Report) error {
	const of = "many"
	if err := b.hub.Create(ctx, policyFor(of)); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	var arrived atomic.Int64
	if err := b.countArrivals(ctx, of, &arrived); err != nil {
		return err
	}
	if _, err := b.quiet(ctx, 3*time.Second); err != nil {
		return err
	}
	before, err := b.count(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := b.createMany(ctx, of, b.apps, deployment); err != nil {
		return err
	}
	created := time.Since(begin)
	want := int64(b.apps * len(b.members))
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		return arrived.Load() >= want, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d arrived: %w", arrived.Load(), want, err)
	}
	applied := time.Since(begin)
	if _, err := b.quiet(ctx, 3*time.Second); err != nil {
		return err
	}
	atRest := time.Since(begin) - 3*time.Second
	after, err := b.count(ctx)
	if err != nil {
		return err
	}
	b.reportMany(r, after.since(before), created, applied, atRest)
	return r.Raw("many", map[string]any{"createdSeconds": created.Seconds(), "appliedSeconds": applied.Seconds(), "settledSeconds": atRest.Seconds(), "counters": after.since(before)})
}

func (b *bench) reportMany(r *results.Report, cost counters, created, applied, atRest time.Duration) {
	what := fmt.Sprintf("%d Deployments × %d members", b.apps, len(b.members))
	r.AtMost("6", what+", all applied", applied.Seconds(), "s", 30)
	r.Note("6", what+", created by the user after", created.Seconds(), "s")
	r.Note("6", what+", every status back after", atRest.Seconds(), "s")
	r.Note("6", "writes per Deployment under load", float64(cost.Revision-int64(cost.Events))/float64(b.apps), "writes")
	r.Note("6", "Events per Deployment under load", float64(cost.Events)/float64(b.apps), "Events")
	share, number := cost.Requests.Conflicts()
	r.AtMost("3", "conflicts under load", share*100, "%", 0.1)
	r.Note("3", "conflicts under load, number", number, "conflicts")
	for name, seconds := range cost.CPU {
		r.Note("6", "CPU time, "+name, seconds, "s")
		r.Note("6", "peak memory, "+name, cost.Peak[name], "MiB")
	}
}

// createMany makes n paused Deployments as a user with a few connections does.
func (b *bench) createMany(ctx context.Context, of string, n int, build func(name, of string, paused bool) *appsv1.Deployment) error {
	err := sideBySide(ctx, n, func(ctx context.Context, i int) error {
		return b.hub.Create(ctx, build(fmt.Sprintf("%s-%d", of, i), of, true))
	})
	if err != nil {
		return fmt.Errorf("create the Deployments: %w", err)
	}
	return nil
}

func (b *bench) countArrivals(ctx context.Context, of string, arrived *atomic.Int64) error {
	for name, member := range b.members {
		factory := informers.NewSharedInformerFactoryWithOptions(member, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = labels.Set{group: of}.String() }))
		informer := factory.Apps().V1().Deployments().Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { arrived.Add(1) }}); err != nil {
			return fmt.Errorf("watch %s: %w", name, err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
	return nil
}
