package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// TestWhatWakesWhat: which change enqueues which bindings. The
// fleet has two clusters: m1 is full but for one core, m2 is full. There are bindings
// in every state.
func TestWhatWakesWhat(t *testing.T) {
	const (
		placed    = "placed"    // on m1, by a policy for all clusters
		duplicate = "duplicate" // on m1, wherever it fits
		elsewhere = "elsewhere" // on m2, by a policy for m2 alone
		waits     = "waits"     // for capacity on any cluster
		waitsM2   = "waits-m2"  // for capacity on m2
		misfit    = "misfit"    // no cluster fits
		lonely    = "lonely"    // keeps away from others of its group, which are everywhere
	)
	all := []string{duplicate, lonely, misfit, placed, waits}
	only := func(name string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}
		}
	}
	at := func(name string, n int32) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: name, Replicas: n}}
		}
	}
	tainted := func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	neighbour := divided("neighbour", 1, apart("app=x"), at("m1", 1))
	moved := neighbour.DeepCopy()
	moved.Spec.Clusters = nil
	moved.Generation++
	cases := map[string]struct {
		before, after func(*clusterv1alpha1.Cluster) // of m1
		happens       func(d *decider.Decider)
		want          []string
	}{
		"a heartbeat":           {after: func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = []metav1.Condition{{Type: "Ready"}} }},
		"resources are used":    {after: capacity(0)},
		"resources become free": {after: capacity(9), want: []string{waits}},
		"pods fit more": {after: func(c *clusterv1alpha1.Cluster) {
			c.Status.ResourceSummary.Allocatable[corev1.ResourcePods] = resource.MustParse("20k")
		}},
		"credentials change":          {after: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://new"; c.Generation++ }},
		"a label":                     {after: func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tier": "test"} }, want: all},
		"a region":                    {after: func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "eu" }, want: all},
		"a zone":                      {after: func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"eu-1a"} }, want: all},
		"a provider":                  {after: func(c *clusterv1alpha1.Cluster) { c.Spec.Provider = "own" }, want: all},
		"a taint comes":               {after: tainted, want: all},
		"a taint goes":                {before: tainted, want: all},
		"an API":                      {after: func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }, want: all},
		"it leaves":                   {after: leaves, want: all},
		"a neighbour moves away":      {happens: func(d *decider.Decider) { d.BindingChanged(neighbour, moved) }, want: []string{lonely}},
		"a neighbour is gone":         {happens: func(d *decider.Decider) { d.BindingGone(neighbour) }, want: []string{lonely}},
		"a stranger moves":            {happens: func(d *decider.Decider) { d.BindingChanged(divided("x", 1), divided("x", 1, at("m1", 1))) }},
		"a reservation is given back": {happens: func(d *decider.Decider) { d.Withdraw(divided("promised", 1)) }, want: []string{waits}},
		"a neighbour says how it is":  {happens: func(d *decider.Decider) { d.BindingChanged(neighbour, neighbour) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m1 := cluster("m1", capacity(1), func(c *clusterv1alpha1.Cluster) {
				if tc.before != nil {
					tc.before(c)
				}
			})
			bindings := []*workv1alpha2.ResourceBinding{
				divided(placed, 2, at("m1", 2), func(b *workv1alpha2.ResourceBinding) {
					b.Annotations = map[string]string{policyv1alpha1.PolicyPlacementAnnotation: appliedOf(b)}
				}),
				bound(func(b *workv1alpha2.ResourceBinding) { b.Name = duplicate }, at("m1", 2)),
				divided(elsewhere, 2, only("m2"), at("m2", 2), func(b *workv1alpha2.ResourceBinding) {
					b.Annotations = map[string]string{policyv1alpha1.PolicyPlacementAnnotation: appliedOf(b)}
				}),
				divided(waits, 5), divided(waitsM2, 5, only("m2")),
				bound(func(b *workv1alpha2.ResourceBinding) { b.Name, b.Spec.Resource.Kind = misfit, "Quay" }),
				divided(lonely, 1, apart("app=x")),
				neighbour, divided("neighbour2", 1, apart("app=x"), at("m2", 1)),
			}
			objects := []client.Object{m1, cluster("m2", capacity(0))}
			for _, b := range bindings {
				objects = append(objects, b)
			}
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			hub := hubOf(objects...).Build()
			r := New(hub, decider.New(hub, decider.Options{Clock: clock}), &recorder{}, Options{Clock: clock})
			for _, b := range bindings[:7] {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := r.decider.Decide(t.Context(), divided("promised", 1)); err != nil {
				t.Fatal(err)
			}
			q := fairqueue.WithClock(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), clock)
			if err := r.wakes.woken.Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if tc.happens != nil {
				tc.happens(r.decider)
			} else {
				after := cluster("m1", capacity(1), func(c *clusterv1alpha1.Cluster) {
					if tc.after != nil {
						tc.after(c)
					}
				})
				if stored := after.DeepCopy(); stored.DeletionTimestamp == nil {
					is := &clusterv1alpha1.Cluster{}
					if err := hub.Get(t.Context(), client.ObjectKeyFromObject(stored), is); err != nil {
						t.Fatal(err)
					}
					stored.ResourceVersion = is.ResourceVersion
					if err := hub.Update(t.Context(), stored); err != nil {
						t.Fatal(err)
					}
				}
				r.wakes.clusterEvents().Update(t.Context(), event.TypedUpdateEvent[*clusterv1alpha1.Cluster]{ObjectOld: m1, ObjectNew: after}, q)
			}
			r.wakes.wake(t.Context())
			var got []string
			for q.Len() > 0 {
				req, _ := q.Get()
				q.Done(req)
				if req.Name != "neighbour" && req.Name != "neighbour2" {
					got = append(got, req.Name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("looked at again (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBackoff: a binding that no event enqueues is tried again by itself, with growing pauses.
func TestBackoff(t *testing.T) {
	cases := map[string]struct {
		binding *workv1alpha2.ResourceBinding
		want    []time.Duration
	}{
		"no room": {divided("web", 5), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute}},
		"a placement that makes no sense": {
			divided("web", 5, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided"}
			}), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second},
		},
		"no cluster fits": {bound(func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.Kind = "Quay" }), make([]time.Duration, 8)},
		"all is well":     {bound(), make([]time.Duration, 8)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := hubOf(cluster("m1", capacity(1)), tc.binding).Build()
			r := New(hub, decider.New(hub, decider.Options{}), &recorder{}, Options{})
			var got []time.Duration
			for range tc.want {
				result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.binding)})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, result.RequeueAfter)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("looks again after (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPriority: how a binding's priority and the event that enqueues it decide its place in the queue.
func TestPriority(t *testing.T) {
	important := bound(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: 1000}
	})
	cases := map[string]struct {
		opts   Options
		happen func(r *Reconciler, q queue)
		want   int
	}{
		"made now": {happen: func(r *Reconciler, q queue) {
			r.wakes.bindingEvents().Create(t.Context(), event.CreateEvent{Object: bound()}, q)
		}},
		"there at the start": {happen: func(r *Reconciler, q queue) {
			r.wakes.bindingEvents().Create(t.Context(), event.CreateEvent{Object: bound(), IsInInitialList: true}, q)
		}, want: -100},
		"made now, important": {happen: func(r *Reconciler, q queue) {
			r.wakes.bindingEvents().Create(t.Context(), event.CreateEvent{Object: important}, q)
		}, want: 1000},
		"a cluster changed": {happen: func(r *Reconciler, q queue) { r.wakes.enqueueAffected(t.Context(), q, cluster("m1")) }, want: 900},
		"room came": {happen: func(r *Reconciler, q queue) {
			if err := r.wakes.woken.Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			r.decider.Unschedulable().Add(important, workv1alpha2.BindingReasonUnschedulable, 0)
			r.decider.ClusterChanged(cluster("m1", capacity(0)), cluster("m1", capacity(1)))
			r.wakes.wake(t.Context())
		}, want: 1000},
		"a quota was edited": {happen: func(r *Reconciler, q queue) {
			r.decider.Unschedulable().Add(important, workv1alpha2.BindingReasonQuotaExceeded, 0)
			quota := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: important.Namespace}}
			r.wakes.quotaEvents().Delete(t.Context(), event.TypedDeleteEvent[*policyv1alpha1.FederatedResourceQuota]{Object: quota}, q)
		}, want: 1000},
		"priorities are off": {opts: Options{NoPriority: true}, happen: func(r *Reconciler, q queue) {
			r.wakes.bindingEvents().Create(t.Context(), event.CreateEvent{Object: important}, q)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := hubOf(important.DeepCopy(), cluster("m1", capacity(1))).Build()
			r := New(hub, decider.New(hub, decider.Options{}), &recorder{}, tc.opts)
			q := fairqueue.New("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()).(*fairqueue.Queue[reconcile.Request])
			tc.happen(r, q)
			if _, priority, _ := q.GetWithPriority(); priority != tc.want {
				t.Errorf("priority %d, want %d", priority, tc.want)
			}
		})
	}
}

// TestQuotaWakes: an edit of a quota enqueues the bindings that wait for it.
func TestQuotaWakes(t *testing.T) {
	hub := hubOf().Build()
	r := New(hub, decider.New(hub, decider.Options{}), &recorder{}, Options{})
	elsewhere := divided("elsewhere", 1)
	elsewhere.Namespace = "else"
	w := r.decider.Unschedulable()
	w.Add(divided("web", 1), workv1alpha2.BindingReasonQuotaExceeded, 0)
	w.Add(elsewhere, workv1alpha2.BindingReasonQuotaExceeded, 0)
	w.Add(divided("room", 1), workv1alpha2.BindingReasonUnschedulable, 0)
	q := fairqueue.WithClock(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), clocktesting.NewFakeClock(time.Unix(0, 0)))
	quota := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
	r.wakes.quotaEvents().Update(t.Context(), event.TypedUpdateEvent[*policyv1alpha1.FederatedResourceQuota]{ObjectOld: quota, ObjectNew: quota}, q)
	var got []string
	for q.Len() > 0 {
		req, _ := q.Get()
		q.Done(req)
		got = append(got, req.String())
	}
	if diff := cmp.Diff([]string{"shop/web"}, got); diff != "" {
		t.Errorf("looked at again (-want +got):\n%s", diff)
	}
}
