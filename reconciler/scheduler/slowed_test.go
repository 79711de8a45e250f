package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
)

// clusterEvents keeps the events on clusters.
type clusterEvents struct {
	mu       sync.Mutex
	messages []string
}

func (e *clusterEvents) Event(obj runtime.Object, kind, reason, message string) {
	if c, is := obj.(*clusterv1alpha1.Cluster); is {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.messages = append(e.messages, kind+" "+reason+" "+c.Name+": "+message)
	}
}

// ready makes a cluster ready; if tainted, with a taint that evicts what runs there.
func (w world) ready(name string, since time.Time, tainted bool) {
	w.Helper()
	servertest.Eventually(w, "write "+name, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := w.hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return err
		}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ClusterReadyReason, LastTransitionTime: metav1.NewTime(since)}}
		if err := w.hub.Status().Update(ctx, c); err != nil {
			return err
		}
		c.Spec.Taints = nil
		if tainted {
			c.Spec.Taints = []corev1.Taint{{Key: "drill", Effect: corev1.TaintEffectNoExecute}}
		}
		return w.hub.Update(ctx, c)
	})
}

// in returns those of n bindings with a name that are placed in a cluster.
func (w world) in(cluster, name string, n int) (out []*workv1alpha2.ResourceBinding, err error) {
	for i := range n {
		b := &workv1alpha2.ResourceBinding{}
		if err := w.hub.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("%s-%d-deployment", name, i)}, b); err != nil {
			return nil, err
		}
		if len(b.Spec.Clusters) == 1 && b.Spec.Clusters[0].Name == cluster {
			out = append(out, b)
		}
	}
	return out, nil
}

// arrive waits until want of n bindings with a name are placed in a cluster.
func (w world) arrive(cluster, name string, want, n int) {
	w.Helper()
	servertest.Eventually(w, name+" in "+cluster, func(context.Context) error {
		got, err := w.in(cluster, name, n)
		if err == nil && len(got) != want {
			err = fmt.Errorf("%d of %d, want %d", len(got), n, want)
		}
		return err
	})
}

// says writes into the status of bindings that they have the given health in a cluster.
func (w world) says(cluster, name string, n int, health workv1alpha2.ResourceHealth) {
	w.Helper()
	all, err := w.in(cluster, name, n)
	w.do(err)
	for _, b := range all {
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: cluster, Applied: true, Health: health}}
		w.do(w.hub.Status().Update(w.Context(), b))
	}
}

// slowed waits until a cluster has, or does not have, the condition EvictionSlowed.
func (w world) slowed(name string, want bool) {
	w.Helper()
	servertest.Eventually(w, "the condition EvictionSlowed of "+name, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := w.hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return err
		}
		if got := meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionSlowed); got != want {
			return fmt.Errorf("%t: %+v", got, c.Status.Conditions)
		}
		return nil
	})
}

// TestMovesAreSlowed: while what was moved off a cluster does not become healthy, what runs in another cluster that has
// to be left is moved one by one, also after a change of the leader; once it is healthy, all at once.
func TestMovesAreSlowed(t *testing.T) {
	env := servertest.New(t)
	clock := clocktesting.NewFakeClock(time.Now().Add(time.Hour)) // taints are dated by the server
	events := &clusterEvents{}
	register := func(ctx context.Context, mgr ctrl.Manager) error {
		decides := decider.New(mgr.GetClient(), decider.Options{Clock: clock, Placement: placement.Options{Failover: failover.Rules{Taints: true}}})
		return errors.Join(bindings.Register(ctx, mgr), decides.Register(ctx, mgr),
			scheduler.New(mgr.GetClient(), decides, events, scheduler.Options{Clock: clock}).Register(mgr))
	}
	stop := env.StartLoops(t, register)
	w := world{t, env.Hub}
	begun := clock.Now().Add(-2 * time.Hour)
	const first, second = 8, 20
	for group, n := range map[string]int{"first": first, "second": second} {
		w.cluster(group, 1000, "")
		w.ready(group, begun, false)
		for i := range n {
			w.binding(fmt.Sprintf("%s-%d", group, i), 1, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement = &policyv1alpha1.Placement{
					ClusterAffinity:   &policyv1alpha1.ClusterAffinity{ClusterNames: []string{group, "target"}},
					SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}},
				}
			})
		}
		w.arrive(group, group, n, n)
	}
	w.cluster("target", 1000, "")
	w.ready("target", begun, false)

	w.ready("first", begun, true)
	w.arrive("target", "first", first, first) // no outcomes are known: all at once
	w.says("target", "first", first, workv1alpha2.ResourceUnhealthy)
	clock.Step(failover.DefaultHealthTimeout + time.Second)
	w.ready("second", begun, true)
	for moved := 1; moved <= 3; moved++ {
		w.arrive("target", "second", moved, second)
		env.QuietRevision(t)
		w.arrive("target", "second", moved, second)
		if moved > 1 {
			clock.Step(time.Second)
			continue
		}
		w.do(stop()) // the next leader finds what was moved, and that it is not healthy
		stop = env.StartLoops(t, register)
		defer func() { w.do(stop()) }()
	}
	clock.Step(10 * time.Second)
	w.slowed("second", true)
	w.says("target", "first", first, workv1alpha2.ResourceHealthy)
	clock.Step(time.Second)
	w.arrive("target", "second", second, second)
	clock.Step(10 * time.Second)
	w.slowed("second", false)

	events.mu.Lock()
	defer events.mu.Unlock()
	const slowed = "Warning EvictionSlowed second: 8 of 8 templates that were moved off clusters last are not healthy where they were moved to, such as Deployment default/first-0: " +
		"no more than 1 in a second are moved until they are, instead of as many as there are"
	want := []string{slowed, slowed} // by each of the two leaders
	if diff := cmp.Diff(want, slices.Clone(events.messages)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
