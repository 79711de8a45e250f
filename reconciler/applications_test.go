package reconciler_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// illIn is an override by which "web" never gets well in these clusters.
func illIn(ns string, clusters ...string) *policyv1alpha1.OverridePolicy {
	o := nowhere(ns)
	o.Spec.OverrideRules[0].TargetCluster.ClusterNames = clusters
	return o
}

// failing prefers one cluster to the other, and has "web" moved after so many seconds in which it is not well.
func failing(seconds int32, purge policyv1alpha1.PurgeMode, grace *int32) func(*policyv1alpha1.PropagationPolicy) {
	return func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement = policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{to}}},
			{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{from}}},
		}}
		p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &seconds}, PurgeMode: purge, GracePeriodSeconds: grace,
		}}
	}
}

// tasked reports whether "web" leaves a cluster by a task that f takes.
func (m *moves) tasked(ns, cluster string, f func(*workv1alpha2.GracefulEvictionTask) bool) error {
	b, err := m.binding(ns)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(b.Spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool { return task.FromCluster == cluster && f(&task) }) {
		return fmt.Errorf("placed in %v, leaves %+v", b.Spec.Clusters, b.Spec.GracefulEvictionTasks)
	}
	return nil
}

// TestPurgeModesOfApplications: what becomes of the copy that failed, as clients of Karmada expect it.
func TestPurgeModesOfApplications(t *testing.T) {
	m := newMoves(t)
	t.Run("never: it stays until somebody lets go of it", func(t *testing.T) {
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.check(m.hub.Hub.Create(m.Context(), illIn(ns, to)))
		m.start(ns, failing(1, policyv1alpha1.PurgeModeNever, nil))
		kept := func(task *workv1alpha2.GracefulEvictionTask) bool { return ptr.Deref(task.SuppressDeletion, false) }
		m.eventually("it runs in the other one", func() error { return errors.Join(m.runs(from, ns), m.tasked(ns, to, kept)) })
		m.hub.QuietRevision(t)
		if err := m.tasked(ns, to, kept); err != nil || !m.has(to, ns) {
			t.Errorf("the old copy is there: %t, %v", m.has(to, ns), err)
		}
		m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			b, err := m.binding(ns)
			if err != nil {
				return err
			}
			b.Spec.GracefulEvictionTasks[0].SuppressDeletion = ptr.To(false)
			return m.hub.Hub.Update(m.Context(), b)
		}))
		m.eventually("it goes", func() error { return m.gone(to, ns) })
	})
	t.Run("gracefully, and the new one is never well: it goes after its grace", func(t *testing.T) {
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.check(m.hub.Hub.Create(m.Context(), illIn(ns, to, from)))
		m.start(ns, failing(1, policyv1alpha1.PurgeModeGracefully, ptr.To[int32](3)))
		m.eventually("both are there", func() error {
			if !m.has(to, ns) || !m.has(from, ns) {
				return errors.New("one is missing")
			}
			return m.tasked(ns, to, func(task *workv1alpha2.GracefulEvictionTask) bool { return ptr.Deref(task.GracePeriodSeconds, 0) == 3 })
		})
		m.eventually("the old one goes", func() error { return m.gone(to, ns) })
	})
	t.Run("what is edited in the policy counts for the next move", func(t *testing.T) {
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.check(m.hub.Hub.Create(m.Context(), illIn(ns, to, from)))
		m.start(ns, failing(3600, policyv1alpha1.PurgeModeGracefully, ptr.To[int32](600)))
		m.eventually("it is in the first one", func() error {
			if !m.has(to, ns) {
				return errors.New("it is not")
			}
			return nil
		})
		m.edit(ns, failing(1, policyv1alpha1.PurgeModeGracefully, ptr.To[int32](77)))
		m.eventually("it leaves with the new grace", func() error {
			return m.tasked(ns, to, func(task *workv1alpha2.GracefulEvictionTask) bool { return ptr.Deref(task.GracePeriodSeconds, 0) == 77 })
		})
	})
}
