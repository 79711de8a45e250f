package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/reconciler"
)

// registerDrains is registerMoves with the loop that places anew. Failover is off.
func registerDrains(ctx context.Context, mgr ctrl.Manager) error {
	return reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: []string{"template", "scheduler", "rebalance", "dependency", "binding", "namespace", "execution", "status", "cluster"},
	})
}

// drain has a cluster drained, or not any more.
func (m *moves) drain(cluster string, on bool) {
	m.Helper()
	m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: cluster}, c); err != nil {
			return err
		}
		for _, taint := range drain.Taints() {
			c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
			if on {
				c.Spec.Taints = append(c.Spec.Taints, taint)
			}
		}
		return m.hub.Hub.Update(m.Context(), c)
	}))
}

// copies counts the copies of "web" that do well in all members, at each change of any.
type copies struct {
	m  *moves
	ns string

	mu    sync.Mutex
	there map[string]int32
	// least that there are to be, and what was wrong with that.
	least int32
	wrong []string
}

// watch counts until the test ends.
func (m *moves) watch(ns string) *copies {
	m.Helper()
	c := &copies{m: m, ns: ns, there: map[string]int32{}}
	var done sync.WaitGroup
	m.Cleanup(done.Wait)
	for name, edge := range m.edges {
		w, err := edge.(client.WithWatch).Watch(m.Context(), &appsv1.DeploymentList{}, client.InNamespace(ns))
		m.check(err)
		m.Cleanup(w.Stop)
		done.Go(func() {
			for e := range w.ResultChan() {
				if web, ok := e.Object.(*appsv1.Deployment); ok {
					c.count(name, web, e.Type)
				}
			}
		})
	}
	return c
}

func (c *copies) count(cluster string, web *appsv1.Deployment, event watch.EventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there[cluster] = web.Status.AvailableReplicas
	if event == watch.Deleted {
		c.there[cluster] = 0
	}
	if sum(c.there) >= c.least {
		return
	}
	now := map[string]int32{} // one member's report may come later than another's
	for name, edge := range c.m.edges {
		web := &appsv1.Deployment{}
		if err := edge.Get(c.m.Context(), client.ObjectKey{Namespace: c.ns, Name: "web"}, web); err == nil {
			now[name] = web.Status.AvailableReplicas
		}
	}
	if sum(now) < c.least {
		c.wrong = append(c.wrong, fmt.Sprint(now))
	}
}

func sum(there map[string]int32) int32 {
	var out int32
	for _, n := range there {
		out += n
	}
	return out
}

// keep has the count judged from now on.
func (c *copies) keep(least int32) {
	c.m.Helper()
	c.m.eventually(fmt.Sprintf("%d copies do well", least), func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sum(c.there) != least {
			return fmt.Errorf("%v", c.there)
		}
		c.least = least
		return nil
	})
}

// end has the count judged no more.
func (c *copies) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least = 0
}

func (c *copies) judge(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 {
		t.Errorf("fewer than %d copies did well: %v", c.least, c.wrong)
	}
}

// scale gives "web" that many replicas.
func (m *moves) scale(ns string, replicas int32) {
	m.Helper()
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	m.check(m.hub.Hub.Patch(m.Context(), web, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
}

// TestADrainKeepsTheCount: with failover off, what runs in a cluster that is drained is moved, and at no
// time fewer copies do well than there are to be. It does not return by itself, and does when it is placed anew.
func TestADrainKeepsTheCount(t *testing.T) {
	m := newMovesWith(t, registerDrains)
	t.Run("the new copies are slow to do well", func(t *testing.T) {
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.check(m.hub.Hub.Create(m.Context(), nowhere(ns)))
		m.start(ns, func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.Placement = policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
				{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{from}}},
				{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{to}}},
			}}
		})
		count := m.watch(ns)
		m.scale(ns, 3)
		count.keep(3)
		m.drain(from, true)
		defer m.drain(from, false)
		m.eventually("the new copies do not do well", func() error {
			w, err := m.work(to, ns)
			if err == nil && !slices.ContainsFunc(w.Status.ManifestStatuses, func(s workv1alpha1.ManifestStatus) bool { return s.Health == workv1alpha1.ResourceUnhealthy }) {
				err = fmt.Errorf("status %+v", w.Status)
			}
			return err
		})
		m.hub.QuietRevision(t)
		m.restart()
		m.check(m.runs(from, ns))
		m.check(m.hub.Hub.Delete(m.Context(), nowhere(ns)))
		m.eventually("it has left", func() error { return errors.Join(m.gone(from, ns), m.runs(to, ns)) })
		count.judge(t)
	})
	t.Run("there and back", func(t *testing.T) {
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.start(ns, func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			}
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{from, to}}
		})
		count := m.watch(ns)
		m.scale(ns, 4)
		count.keep(4)
		m.check(errors.Join(m.runs(from, ns), m.runs(to, ns)))
		m.drain(from, true)
		m.eventually("it has left", func() error { return errors.Join(m.gone(from, ns), m.runs(to, ns)) })
		m.drain(from, false)
		m.hub.QuietRevision(t)
		m.check(m.gone(from, ns))
		count.judge(t)
		count.end()
		m.returns(ns)
		m.eventually("it is back", func() error {
			b, err := m.binding(ns)
			if err == nil && (len(b.Spec.Clusters) != 2 || len(b.Spec.GracefulEvictionTasks) > 0) {
				err = fmt.Errorf("placed in %v, leaves %v", b.Spec.Clusters, b.Spec.GracefulEvictionTasks)
			}
			return errors.Join(err, m.runs(from, ns), m.runs(to, ns))
		})
	})
}

// returns has "web" placed anew.
func (m *moves) returns(ns string) {
	m.Helper()
	r := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{GenerateName: "return-"}}
	r.Spec.Workloads = []appsv1alpha1.ObjectReference{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: ns, Name: "web"}}
	r.Spec.TTLSecondsAfterFinished = ptr.To(int32(time.Minute / time.Second))
	m.check(m.hub.Hub.Create(m.Context(), r))
}

// TestADrainTakesNothingThatHasNoPlace: what fits nowhere else stays, and says so.
func TestADrainTakesNothingThatHasNoPlace(t *testing.T) {
	m := newMovesWith(t, registerDrains)
	ns := m.hub.Namespace(t)
	m.start(ns, nil, from)
	count := m.watch(ns)
	count.keep(1)
	m.drain(from, true)
	m.eventually("it says that it stays", func() error {
		b, err := m.binding(ns)
		if err != nil {
			return err
		}
		c := &clusterv1alpha1.Cluster{}
		m.check(m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: from}, c))
		if row, concerned := drain.RowOf(b, c, time.Now()); !concerned || row.State != drain.Refused {
			return fmt.Errorf("%+v", row)
		}
		return nil
	})
	m.hub.QuietRevision(t)
	m.check(m.runs(from, ns))
	count.judge(t)
}
