package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/reconciler"
)

// registerEvictions is registerMoves, and taints move what they are not tolerated by.
func registerEvictions(ctx context.Context, mgr ctrl.Manager) error {
	return reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: []string{"template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster"},
		Scheduling:  reconciler.Scheduling{Failover: reconciler.Failover{Rules: failover.Rules{Taints: true, State: true}}},
	})
}

// taint gives a cluster a taint that moves what runs there, or takes it away.
func (m *moves) taint(cluster string, on bool) {
	m.Helper()
	m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: cluster}, c); err != nil {
			return err
		}
		c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "drill" })
		if on {
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "drill", Effect: corev1.TaintEffectNoExecute})
		}
		return m.hub.Hub.Update(m.Context(), c)
	}))
}

// binding returns that of "web".
func (m *moves) binding(ns string) (*workv1alpha2.ResourceBinding, error) {
	b := &workv1alpha2.ResourceBinding{}
	err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("Deployment", "web")}, b)
	return b, err
}

// has reports whether the Deployment "web" is in a cluster.
func (m *moves) has(cluster, ns string) bool {
	m.Helper()
	err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, &appsv1.Deployment{})
	m.check(client.IgnoreNotFound(err))
	return err == nil
}

// oneOf lets "web" run in one of both clusters, and tolerate the taint for that many seconds.
func oneOf(seconds int64, purge policyv1alpha1.PurgeMode) func(*policyv1alpha1.PropagationPolicy) {
	return func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement = policyv1alpha1.Placement{
			ClusterAffinity:    &policyv1alpha1.ClusterAffinity{ClusterNames: []string{from, to}},
			SpreadConstraints:  []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}},
			ClusterTolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(seconds)}},
		}
		p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: purge}}
	}
}

// TestATaintMovesWhatRuns: the old copy is kept until the new one is healthy, or gone before
// it starts, as the policy says; what has a new place stays there.
func TestATaintMovesWhatRuns(t *testing.T) {
	m := newMovesWith(t, registerEvictions)
	for _, purge := range []policyv1alpha1.PurgeMode{policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeDirectly} {
		t.Run(string(purge), func(t *testing.T) {
			m := m.in(t)
			ns := m.hub.Namespace(t)
			m.start(ns, oneOf(1, purge))
			var at, other string
			m.eventually("it runs in one of both", func() error {
				b, err := m.binding(ns)
				if err != nil || len(b.Spec.Clusters) != 1 {
					return errors.Join(err, fmt.Errorf("placed in %v", b.Spec.Clusters))
				}
				at, other = b.Spec.Clusters[0].Name, from
				if at == from {
					other = to
				}
				return m.runs(at, ns)
			})
			m.taint(at, true)
			m.eventually("it is left", func() error {
				if purge == policyv1alpha1.PurgeModeDirectly {
					if elsewhere := m.runs(other, ns); elsewhere == nil && m.has(at, ns) {
						t.Fatal("two copies")
					}
					return errors.Join(m.gone(at, ns), m.runs(other, ns))
				}
				if there := m.has(at, ns); !there {
					if elsewhere := m.runs(other, ns); elsewhere != nil {
						t.Fatalf("gone before it runs elsewhere: %v", elsewhere)
					}
				}
				return errors.Join(m.gone(at, ns), m.runs(other, ns))
			})
			m.eventually("the task is over", func() error {
				b, err := m.binding(ns)
				if len(b.Spec.GracefulEvictionTasks) > 0 {
					err = fmt.Errorf("%+v", b.Spec.GracefulEvictionTasks)
				}
				return err
			})
			m.taint(at, false)
			m.hub.QuietRevision(t)
			if b, err := m.binding(ns); err != nil || len(b.Spec.Clusters) != 1 || b.Spec.Clusters[0].Name != other {
				t.Errorf("it returned by itself: %v, %v", b.Spec.Clusters, err)
			}
		})
	}
}

// TestWhatFailedReturns: once the cluster that it was moved off has been well for as long as the policy says, it runs there again,
// and at no time nowhere.
func TestWhatFailedReturns(t *testing.T) {
	m := newMovesWith(t, registerEvictions)
	ns := m.hub.Namespace(t)
	m.start(ns, func(p *policyv1alpha1.PropagationPolicy) {
		oneOf(1, policyv1alpha1.PurgeModeGracefully)(p)
		p.Spec.Failover.FailBackSeconds = ptr.To[int32](2)
	})
	var at, other string
	m.eventually("it runs in one of both", func() error {
		b, err := m.binding(ns)
		if err != nil || len(b.Spec.Clusters) != 1 {
			return errors.Join(err, fmt.Errorf("placed in %v", b.Spec.Clusters))
		}
		at, other = b.Spec.Clusters[0].Name, from
		if at == from {
			other = to
		}
		return m.runs(at, ns)
	})
	somewhere := func() {
		if m.runs(at, ns) != nil && m.runs(other, ns) != nil && m.runs(at, ns) != nil {
			t.Fatal("it runs nowhere")
		}
	}
	m.taint(at, true)
	m.eventually("it runs elsewhere", func() error {
		somewhere()
		return errors.Join(m.gone(at, ns), m.runs(other, ns))
	})
	m.taint(at, false)
	m.eventually("it is back", func() error {
		somewhere()
		return errors.Join(m.runs(at, ns), m.gone(other, ns))
	})
	m.hub.QuietRevision(t)
}

// TestStateIsCarriedOver: the new copy has what its policy wants of the status of the old one from its first moment on,
// and that one is gone by then.
func TestStateIsCarriedOver(t *testing.T) {
	m := newMovesWith(t, registerEvictions)
	ns := m.hub.Namespace(t)
	const label = "drill.example.com/ready"
	m.start(ns, func(p *policyv1alpha1.PropagationPolicy) {
		oneOf(1, policyv1alpha1.PurgeModeDirectly)(p)
		p.Spec.Placement.ClusterAffinity.ClusterNames = []string{from}
		p.Spec.Failover.Cluster.StatePreservation = &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: label, JSONPath: "{.readyReplicas}"}}}
	}, from)
	m.edit(ns, affinity(from, to))
	m.eventually("its status is known, and both clusters are meant", func() error {
		b, err := m.binding(ns)
		if err != nil || len(b.Status.AggregatedStatus) != 1 || b.Status.AggregatedStatus[0].Health != workv1alpha2.ResourceHealthy || len(b.Spec.Placement.ClusterAffinity.ClusterNames) != 2 {
			return errors.Join(err, fmt.Errorf("%+v", b.Status.AggregatedStatus))
		}
		return nil
	})
	watcher, err := m.edges[to].(client.WithWatch).Watch(t.Context(), &appsv1.DeploymentList{}, client.InNamespace(ns))
	m.check(err)
	defer watcher.Stop()
	m.taint(from, true)
	first, ok := (<-watcher.ResultChan()).Object.(*appsv1.Deployment)
	if !ok || first.Labels[label] != "1" || m.has(from, ns) {
		t.Errorf("the first that is seen of the new copy: labels %v; the old one is there: %t", first.GetLabels(), m.has(from, ns))
	}
	m.eventually("the label goes with the task", func() error {
		web := &appsv1.Deployment{}
		err := m.edges[to].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web)
		if web.Labels[label] != "" {
			err = errors.New("it is there")
		}
		return err
	})
}

// TestNoReplacement: what has no place elsewhere stays, and says so; once there is a place it
// goes, or once it may stay it says no more.
func TestNoReplacement(t *testing.T) {
	m := newMovesWith(t, registerEvictions)
	ns := m.hub.Namespace(t)
	m.start(ns, nil, from)
	m.taint(from, true)
	says := func(want bool) func() error {
		return func() error {
			b, err := m.binding(ns)
			if c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Evictable); (c != nil) != want || want && c.Reason != workv1alpha2.NoReplacementReason {
				err = errors.Join(err, fmt.Errorf("condition %+v", c))
			}
			if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) || len(b.Spec.GracefulEvictionTasks) > 0 {
				err = errors.Join(err, fmt.Errorf("%+v, %+v", b.Status.Conditions, b.Spec.GracefulEvictionTasks))
			}
			return err
		}
	}
	m.eventually("it stays and says so", says(true))
	m.restart()
	m.hub.QuietRevision(t)
	if err := m.runs(from, ns); err != nil {
		t.Fatal(err)
	}
	m.taint(from, false)
	m.eventually("it says no more", says(false))
	m.taint(from, true)
	m.eventually("it says so again", says(true))
	m.edit(ns, affinity(from, to))
	m.eventually("it goes where there is a place", func() error { return errors.Join(m.gone(from, ns), m.runs(to, ns)) })
	m.eventually("and says no more", says(false))
}

// TestAnApplicationMoves: one that does not get healthy in a cluster is moved to another, and the old copy goes once the new
// one is healthy; one that has no other place stays.
func TestAnApplicationMoves(t *testing.T) {
	m := newMoves(t)
	ns := m.hub.Namespace(t)
	m.check(m.hub.Hub.Create(m.Context(), nowhere(ns)))
	m.start(ns, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement = policyv1alpha1.Placement{
			ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
				{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{to}}},
				{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{from}}},
			},
		}
		p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](1)}, PurgeMode: policyv1alpha1.PurgeModeGracefully, GracePeriodSeconds: ptr.To[int32](600),
		}}
	})
	m.eventually("it runs in the other cluster, and in that alone", func() error {
		return errors.Join(m.runs(from, ns), m.gone(to, ns))
	})
	b, err := m.binding(ns)
	if err != nil || len(b.Spec.Clusters) != 1 || b.Spec.Clusters[0].Name != from {
		t.Errorf("placed in %v, %v", b.Spec.Clusters, err)
	}
	m.hub.QuietRevision(t)
}
