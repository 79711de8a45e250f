package reconciler_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
)

// away has both clusters count as lost, with nobody at work there, until restart.
func (m *moves) away() {
	m.Helper()
	m.check((*m.loops)())
	for _, name := range []string{from, to} {
		m.report(name, metav1.ConditionUnknown, clusterv1alpha1.ClusterConditionReady)
		m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			c := &clusterv1alpha1.Cluster{}
			if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: name}, c); err != nil {
				return err
			}
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoSchedule})
			return m.hub.Hub.Update(m.Context(), c)
		}))
	}
	*m.loops = m.hub.StartLoops(m.T, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{"template", "scheduler", "dependency", "binding", "namespace"}})
	})
}

// takesBack deletes what start made, and makes it again before the clusters are back.
func (m *moves) takesBack(ns string) {
	m.Helper()
	web := &appsv1.Deployment{}
	m.check(m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web))
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}
	m.deleted(ns, web, settings)
	for _, obj := range []client.Object{settings, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: web.Spec}} {
		obj.SetResourceVersion("")
		m.check(m.hub.Hub.Create(m.Context(), obj))
	}
}

// deleted deletes templates, and waits until their Works wait to take their objects along.
func (m *moves) deleted(ns string, objects ...client.Object) {
	m.Helper()
	for _, obj := range objects {
		m.check(m.hub.Hub.Delete(m.Context(), obj))
	}
	for _, cluster := range []string{from, to} {
		m.eventually("its Work in "+cluster+" waits", func() error { return m.recalled(cluster, ns, false) })
	}
}

// recalled errs unless the Work of "web" in a cluster is being deleted, and leaves its object there, or does not.
func (m *moves) recalled(cluster, ns string, want bool) error {
	w, err := m.work(cluster, ns)
	if err != nil {
		return err
	}
	if w.DeletionTimestamp == nil || (w.Annotations[workv1alpha2.WantedAgainAnnotation] != "") != want {
		return fmt.Errorf("deleted at %v, %v", w.DeletionTimestamp, w.Annotations)
	}
	return nil
}

func (m *moves) uid(cluster, ns string) types.UID {
	m.Helper()
	live := &appsv1.Deployment{}
	m.check(m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, live))
	return live.UID
}

// released has the loops at work alone that write to clusters, until they have let go of "web" in both.
func (m *moves) released(ns string) {
	m.Helper()
	m.check((*m.loops)())
	*m.loops = m.hub.StartLoops(m.T, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{"cluster", "execution"}})
	})
	for _, cluster := range []string{from, to} {
		m.eventually(cluster+" has let go of it", func() error {
			w, err := m.work(cluster, ns)
			if err == nil && !undelete.Released(w) {
				return fmt.Errorf("%v, %v", w.Annotations, w.Status.Conditions)
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// TestAWorkloadThatIsWantedAgain: a workload is deleted while its clusters are away, and is there again before they are back: in each it
// goes on as it ran, but in one that it is not to be in any more, even if that is decided at the last moment, or where it is deleted once
// more.
func TestAWorkloadThatIsWantedAgain(t *testing.T) {
	m := newMoves(t)
	stays, leaves, late, goes := m.hub.Namespace(t), m.hub.Namespace(t), m.hub.Namespace(t), m.hub.Namespace(t)
	was := map[string]types.UID{}
	for _, ns := range []string{stays, leaves, late, goes} {
		m.start(ns, nil, from, to)
		for _, cluster := range []string{from, to} {
			was[cluster+"/"+ns] = m.uid(cluster, ns)
		}
	}
	m.away()
	for _, ns := range []string{stays, leaves, late, goes} {
		m.takesBack(ns)
		for _, cluster := range []string{from, to} {
			m.eventually("its Work in "+cluster+" leaves it there", func() error { return m.recalled(cluster, ns, true) })
		}
	}
	m.edit(leaves, affinity(to))
	m.deleted(goes, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: goes, Name: "web"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: goes, Name: "settings"}})
	m.released(late)
	m.edit(late, affinity(to))
	m.restart()
	for _, at := range []struct{ cluster, ns string }{{from, stays}, {to, stays}, {to, leaves}, {to, late}} {
		m.eventually("it is carried to "+at.cluster+" again", func() error {
			if w, err := m.work(at.cluster, at.ns); err != nil || w.DeletionTimestamp != nil || !applied(w) {
				return fmt.Errorf("its Work is %+v: %w", w, err)
			}
			return nil
		})
		if got, want := m.uid(at.cluster, at.ns), was[at.cluster+"/"+at.ns]; got != want {
			t.Errorf("%s has made another one: %s, want %s", at.cluster, got, want)
		}
	}
	for _, at := range []struct{ cluster, ns string }{{from, leaves}, {from, late}, {from, goes}, {to, goes}} {
		m.eventually("it is gone from "+at.cluster, func() error { return m.gone(at.cluster, at.ns) })
	}
}
