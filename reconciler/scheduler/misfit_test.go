package scheduler

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// TestWhyNoClusterFitsStaysTrue: only a change of a cluster that a binding selects enqueues the
// binding. So its message about all other clusters must not depend on what
// changes there.
func TestWhyNoClusterFitsStaysTrue(t *testing.T) {
	tainted := func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "night", Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, meant := range map[string]string{"of a cluster that is meant": "m1", "of one that is not": "m2"} {
		t.Run(name, func(t *testing.T) {
			m1 := cluster("m1", tainted)
			b := bound(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{meant}}
			})
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			hub := hubOf(m1, b).Build()
			r := New(hub, decider.New(hub, decider.Options{Clock: clock}), &recorder{}, Options{Clock: clock})
			read := func() string {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
					t.Fatal(err)
				}
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
					t.Fatal(err)
				}
				record, _ := placement.RecordOf(b)
				return record.Message
			}
			if message := read(); strings.Contains(message, "night") != (meant == "m1") {
				t.Errorf("while the taint is there: %q", message)
			}
			after := cluster("m1")
			stored := &clusterv1alpha1.Cluster{}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(m1), stored); err != nil {
				t.Fatal(err)
			}
			stored.Spec.Taints = nil
			if err := hub.Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			q := fairqueue.WithClock(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), clock)
			defer q.ShutDown()
			r.wakes.clusterEvents().Update(t.Context(), event.TypedUpdateEvent[*clusterv1alpha1.Cluster]{ObjectOld: m1, ObjectNew: after}, q)
			message := ""
			if record, ok := placement.RecordOf(b); ok {
				message = record.Message
			}
			if q.Len() > 0 {
				message = read()
			}
			if strings.Contains(message, "night") {
				t.Errorf("the taint is gone: %q", message)
			}
		})
	}
}

// TestTheFirstClusterAndTheLast: the message that no cluster has joined stays until one has, and comes back once none
// is left, for bindings that do not select it, too.
func TestTheFirstClusterAndTheLast(t *testing.T) {
	const none = "0/0 clusters are available: no cluster has joined."
	m1 := cluster("m1")
	b := bound(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	})
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	hub := hubOf(b).Build()
	r := New(hub, decider.New(hub, decider.Options{Clock: clock}), &recorder{}, Options{Clock: clock})
	q := fairqueue.WithClock(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), clock)
	defer q.ShutDown()
	q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	says := func() string {
		t.Helper()
		for q.Len() > 0 {
			req, _ := q.Get()
			if _, err := r.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			q.Done(req)
		}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
		record, _ := placement.RecordOf(b)
		return record.Message
	}
	if message := says(); message != none {
		t.Errorf("in an empty fleet it says %q, want %q", message, none)
	}
	if err := hub.Create(t.Context(), m1); err != nil {
		t.Fatal(err)
	}
	r.wakes.clusterEvents().Create(t.Context(), event.TypedCreateEvent[*clusterv1alpha1.Cluster]{Object: m1}, q)
	if message, want := says(), "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint."; message != want {
		t.Errorf("once a cluster has joined it says %q, want %q", message, want)
	}
	if err := hub.Delete(t.Context(), m1); err != nil {
		t.Fatal(err)
	}
	r.wakes.clusterEvents().Delete(t.Context(), event.TypedDeleteEvent[*clusterv1alpha1.Cluster]{Object: m1}, q)
	if message := says(); message != none {
		t.Errorf("once it has left it says %q, want %q", message, none)
	}
}
