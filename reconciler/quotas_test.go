package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler"
)

// registerQuotas is registerMoves, and clusters get their shares of quotas.
func registerQuotas(ctx context.Context, mgr ctrl.Manager) error {
	return reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: []string{"template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster", "quota", "quotashare"},
	})
}

// third is the cluster that joins later.
const third = "north"

// cores is so much CPU.
func cores(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// shares are cores for clusters, which are named before each.
func shares(of ...string) (out []policyv1alpha1.StaticClusterAssignment) {
	for i := 0; i < len(of); i += 2 {
		out = append(out, policyv1alpha1.StaticClusterAssignment{ClusterName: of[i], Hard: cores(of[i+1])})
	}
	return out
}

// limits reports whether the ResourceQuota "team" of a cluster is in force with so many
// cores; with none, whether there is none.
func (m *moves) limits(cluster, ns, amount string) error {
	m.Helper()
	got := &corev1.ResourceQuota{}
	err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "team"}, got)
	if amount == "" {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errStays)
	}
	if diff := cmp.Diff(corev1.ResourceQuotaStatus{Hard: cores(amount), Used: cores("0")}, got.Status); err == nil && diff != "" {
		return fmt.Errorf("%s (-want +got):\n%s", cluster, diff)
	}
	return err
}

func (m *moves) share(ns string, of ...string) {
	m.Helper()
	m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		q := &policyv1alpha1.FederatedResourceQuota{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "team"}, q); err != nil {
			return err
		}
		q.Spec.StaticAssignments = shares(of...)
		return m.hub.Hub.Update(m.Context(), q)
	}))
}

// says reports whether the status of the quota has these shares, of which nothing is used.
func (m *moves) says(ns string, of ...string) error {
	m.Helper()
	q := &policyv1alpha1.FederatedResourceQuota{}
	if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "team"}, q); err != nil {
		return err
	}
	want := policyv1alpha1.FederatedResourceQuotaStatus{Overall: cores("10")}
	for _, share := range shares(of...) {
		want.AggregatedStatus = append(want.AggregatedStatus, policyv1alpha1.ClusterQuotaStatus{
			ClusterName: share.ClusterName, ResourceQuotaStatus: corev1.ResourceQuotaStatus{Hard: share.Hard, Used: cores("0")},
		})
	}
	if diff := cmp.Diff(want, q.Status); diff != "" {
		return fmt.Errorf("status (-want +got):\n%s", diff)
	}
	return nil
}

// TestSharesOfAQuota: clusters have what they are assigned, those that join later, too, and
// the quota says so.
func TestSharesOfAQuota(t *testing.T) {
	m := newMovesWith(t, registerQuotas)
	ns := m.hub.Namespace(t)
	m.check(m.hub.Hub.Create(m.Context(), &policyv1alpha1.FederatedResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"},
		Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: cores("10"), StaticAssignments: shares(to, "3", from, "4", third, "2")},
	}))
	m.eventually("both have their shares", func() error {
		return errors.Join(m.limits(from, ns, "4"), m.limits(to, ns, "3"), m.says(ns, from, "4", to, "3"))
	})

	m.join(third)
	m.eventually("one that joins later gets its own", func() error {
		return errors.Join(m.limits(third, ns, "2"), m.says(ns, from, "4", third, "2", to, "3"))
	})

	m.share(ns, from, "1500m", third, "2")
	m.eventually("one less, and one of another size", func() error {
		return errors.Join(m.limits(from, ns, "1500m"), m.limits(to, ns, ""), m.says(ns, from, "1500m", third, "2"))
	})

	m.check((*m.loops)())
	m.share(ns, from, "1500m")
	*m.loops = m.hub.StartLoops(m.T, m.register)
	m.eventually("one less while nobody looks", func() error { return m.limits(third, ns, "") })

	m.check((*m.loops)())
	m.check(m.hub.Hub.Delete(m.Context(), &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}}))
	*m.loops = m.hub.StartLoops(m.T, m.register)
	m.eventually("none without the quota, which went while nobody looked", func() error { return m.limits(from, ns, "") })
}

// warns reports whether an Event says that a share does not reach its cluster.
func (m *moves) warns(ns, why string) error {
	m.Helper()
	var events corev1.EventList
	if err := m.hub.Hub.List(m.Context(), &events, client.InNamespace(ns)); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "FederatedResourceQuota" && e.Reason == "SyncWorkFailed" && strings.Contains(e.Message, why) {
			return nil
		}
	}
	return fmt.Errorf("%d events, none of them", len(events.Items))
}

// TestAQuotaThatAClusterHas stays as it is, and the quota says so.
func TestAQuotaThatAClusterHas(t *testing.T) {
	m := newMovesWith(t, registerQuotas)
	ns := m.hub.Namespace(t)
	m.eventually("the namespace", func() error { return m.edges[from].Get(m.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{}) })
	m.check(m.edges[from].Create(m.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: cores("7")}}))
	m.check(m.hub.Hub.Create(m.Context(), &policyv1alpha1.FederatedResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"},
		Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: cores("10"), StaticAssignments: shares(from, "4", to, "3")},
	}))
	m.eventually("the other has its share", func() error { return m.limits(to, ns, "3") })
	m.eventually("the quota says so", func() error { return m.warns(ns, "cluster "+from+": it does not have the share") })
	m.eventually("and counts the other alone", func() error { return m.says(ns, to, "3") })
	m.check(m.hub.Hub.Delete(m.Context(), &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}}))
	m.eventually("the share is gone", func() error { return m.limits(to, ns, "") })
	m.eventually("the cluster's own stays", func() error { return m.limits(from, ns, "7") })
}

// TestATemplateBesideAShare: a ResourceQuota that a policy carries has precedence, whatever
// was there first, and the share comes back when it goes.
func TestATemplateBesideAShare(t *testing.T) {
	m := newMovesWith(t, registerQuotas)
	ns := m.hub.Namespace(t)
	for _, obj := range []client.Object{
		&policyv1alpha1.FederatedResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"},
			Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: cores("10"), StaticAssignments: shares(from, "4")},
		},
		&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "quotas"}, Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ResourceQuota"}},
			Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{from}}},
		}},
	} {
		m.check(m.hub.Hub.Create(m.Context(), obj))
	}
	m.eventually("the share", func() error { return m.limits(from, ns, "4") })
	template := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: cores("7")}}
	m.check(m.hub.Hub.Create(m.Context(), template))
	m.eventually("the template", func() error { return m.limits(from, ns, "7") })
	m.eventually("the quota says so", func() error { return m.warns(ns, "cluster "+from+": it has the ResourceQuota") })
	m.share(ns, from, "5")
	m.hub.QuietRevision(t)
	m.check(m.limits(from, ns, "7"))
	m.check(m.hub.Hub.Delete(m.Context(), template))
	m.eventually("the share is back", func() error { return m.limits(from, ns, "5") })
}
